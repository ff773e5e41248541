"""How a GGUF file is known: by its first bytes."""

from __future__ import annotations

import os
from pathlib import Path

from zoo.files.reading import open_regular

MAGIC = b"GGUF"
"""The first bytes of a file."""


def is_gguf(path: Path) -> bool:
    """Whether a path is a GGUF file, by its first bytes: the file of a model library may have no suffix.

    A file that is named so is one too, and refused where it is read.
    """
    if not os.path.isfile(path):
        return False
    try:
        with open_regular(path) as file:
            return file.read(len(MAGIC)) == MAGIC or path.suffix == ".gguf"
    except OSError:
        return path.suffix == ".gguf"
