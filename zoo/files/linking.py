"""Files with a second name."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def link_file(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it where the file system has no hard links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target)
