"""Files with a second name."""

from __future__ import annotations

import os
from pathlib import Path

from zoo.files.reading import copy_regular


def link_file(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it where the file system has no hard links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        copy_regular(source, target, source.parent, most=os.stat(source).st_size)
