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
"""Directories of a workplace: ``new-<inode>`` is the new content (any other inode is the old directory after the exchange), ``old``
is the old directory when it was moved aside, and names that begin with ``.new`` are temporary."""

_LONGEST_NAME = 200  # bytes; file systems take 255


@contextmanager
def workplace(destination: Path) -> Iterator[Path]:
    """A temporary directory next to a destination.

    It is locked while it is in use: a process that is killed leaves it behind, for the next one to clear.
    """
    clear_left_behind(destination)
    while True:
        made = destination.parent / f"{_prefix(destination)}{secrets.token_hex(4)}"
        try:
            made.mkdir()
            with locked(made) as free:
                if free is not False:  # no other process has taken it for left behind
                    yield made
                    return
        finally:
            with uninterrupted():
                _clear(made, destination)


def clear_left_behind(destination: Path) -> None:
    """Remove the workplaces of a destination whose processes were killed."""
    pattern = re.compile(rf"{re.escape(_prefix(destination))}[0-9a-f]{{8}}")
    for name in filter(pattern.fullmatch, os.listdir(destination.parent)):
        left = destination.parent / name
        with contextlib.suppress(OSError), locked(left) as free:  # neither a link nor a file has a lock
            if free and left.stat().st_uid == os.geteuid():
                with uninterrupted():
                    _clear(left, destination)


def new_directory(workplace: Path) -> Path:
    """Return a new directory in a workplace, for the new content of the destination."""
    made = workplace / NEW
    made.mkdir()
    return made.rename(workplace / f"{NEW}{made.stat().st_ino}")


def _prefix(destination: Path) -> str:
    name = os.fsencode(destination.name)
    short = destination.name if len(name) <= _LONGEST_NAME else hashlib.sha256(name).hexdigest()
    return f".{short}.partial-"


@contextmanager
def locked(directory: Path, *, wait: bool = False) -> Iterator[bool | None]:
    """Hold the lock of a directory, which ends with the process.

    Yields False if another process has it or the directory is gone, and None if the system has no locks.
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


def _clear(left: Path, destination: Path) -> None:
    """Remove a workplace, except the user's files in it; a destination that is now absent gets its old directory back."""
    with contextlib.suppress(OSError):
        for inside in sorted(
            left.iterdir(), reverse=True
        ):  # what is old comes before what would have replaced it
            if inside.is_symlink():
                continue  # not made here
            if inside.name.startswith(SCRAP) or inside.name in (NEW, f"{NEW}{inside.stat().st_ino}"):
                remove_tree(inside)
            elif inside.name == OLD or inside.name.startswith(NEW):
                if os.path.lexists(destination):
                    clear_replaced(inside, destination)
                else:
                    inside.rename(destination)
        left.rmdir()
