"""The parent directories of a path to be written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zoo.files.sync import sync


@contextmanager
def parents_of(path: Path) -> Iterator[None]:
    """Make the directories around a path; those that were made and stay empty are removed again.  Raises OSError."""
    missing = [parent for parent in path.parents if not parent.exists()]
    try:
        for directory in reversed(missing):
            directory.mkdir(exist_ok=True)
            sync(directory.parent)
        yield
    finally:
        with contextlib.suppress(OSError):  # one of them is not empty
            for directory in missing:
                directory.rmdir()
