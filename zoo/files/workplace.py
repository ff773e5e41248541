"""The directory next to a destination in which its new content is made."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zoo.files.carrying import clear_replaced, remove_tree
from zoo.files.interrupts import uninterrupted

NEW, OLD, SCRAP = "new-", "old", ".new"
"""Directories of a workplace: what is made, named by the inode of the directory that was made, as another inode is the directory
that it was exchanged with; what was moved aside; and, by how its name begins, anything that is only to be removed."""

_LONGEST_NAME = 200  # bytes; file systems take 255


@contextmanager
def workplace(place: Path) -> Iterator[Path]:
    """A directory beside a place, which is removed in the end.

    It is locked while it is in use: a process that is killed leaves it behind, for the next one to clear.
    """
    clear_left_behind(place)
    while True:
        made = place.parent / f"{_prefix(place)}{secrets.token_hex(4)}"
        try:
            made.mkdir()
            with locked(made) as free:
                if free is not False:  # no other process has taken it for left behind
                    yield made
                    return
        finally:
            with uninterrupted():
                _clear(made, place)


def clear_left_behind(place: Path) -> None:
    """Remove the workplaces of a place whose processes were killed."""
    pattern = re.compile(rf"{re.escape(_prefix(place))}[0-9a-f]{{8}}")
    for name in filter(pattern.fullmatch, os.listdir(place.parent)):
        left = place.parent / name
        with contextlib.suppress(OSError), locked(left) as free:  # neither a link nor a file has a lock
            if free and left.stat().st_uid == os.geteuid():
                with uninterrupted():
                    _clear(left, place)


def new_directory(workplace: Path) -> Path:
    """Return a new directory in a workplace, for what is to stand at its place."""
    made = workplace / NEW
    made.mkdir()
    return made.rename(workplace / f"{NEW}{made.stat().st_ino}")


def _prefix(place: Path) -> str:
    name = os.fsencode(place.name)
    short = place.name if len(name) <= _LONGEST_NAME else hashlib.sha256(name).hexdigest()
    return f".{short}.partial-"


@contextmanager
def locked(directory: Path, *, wait: bool = False) -> Iterator[bool | None]:
    """Hold the lock of a directory, which ends with the process.

    Yields False where another process has it or the directory is gone, and None where there are no locks.
    """
    if sys.platform == "win32":
        yield None
        return
    import fcntl

    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        yield False
        return
    free: bool | None = True
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            free = os.path.samestat(os.fstat(descriptor), os.lstat(directory))
        except (BlockingIOError, FileNotFoundError):
            free = False
        except OSError:
            free = None
        yield free
    finally:
        os.close(descriptor)


def _clear(left: Path, place: Path) -> None:
    """Remove a workplace, except the user's files in it; a place that is now empty gets back what was moved aside."""
    with contextlib.suppress(OSError):
        for inside in sorted(
            left.iterdir(), reverse=True
        ):  # what is old comes before what would have replaced it
            if inside.is_symlink():
                continue  # not made here
            if inside.name.startswith(SCRAP) or inside.name in (NEW, f"{NEW}{inside.stat().st_ino}"):
                remove_tree(inside)
            elif inside.name == OLD or inside.name.startswith(NEW):
                if os.path.lexists(place):
                    clear_replaced(inside, place)
                else:
                    inside.rename(place)
        left.rmdir()
