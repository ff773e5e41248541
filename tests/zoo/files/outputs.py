"""Small outputs as zoo writes them, and what stands in a directory."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from zoo.files.destination import CONVERSION, MANIFEST, replacing

EXPORT = {"zoo": "0.1.0", "graphs": {}}
CHECKPOINT = {"class_name": "GPT2LMHeadModel", "model_type": "gpt2"}


def put(destination: Path, files: Mapping[str, str], manifest: str = MANIFEST) -> None:
    """Write an output with some files and the manifest that lists them."""
    with replacing(destination, manifest) as directory:
        for path, text in files.items():
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_text(text)
        facts = CHECKPOINT if manifest == CONVERSION else EXPORT
        sizes = {path: len(text) for path, text in files.items()}
        (directory / manifest).write_text(json.dumps({**facts, "files": sizes}))


def tree(directory: Path) -> dict[str, str | None]:
    """What is below a directory: texts of files, None for directories, and where links lead."""
    found: dict[str, str | None] = {}
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = path.read_text()
        elif path.is_dir():
            found[name] = None
        else:
            found[name] = "special"
    return found
