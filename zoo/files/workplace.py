"""The directory next to a destination in which its new content is made."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zoo.files.carrying import clear_replaced, remove_tree
from zoo.files.interrupts import uninterrupted

NEW = "new"
"""What is made in a workplace: a directory of this name, and others whose names begin with ``.new.``."""

OLD, SWAP = "old", "swap-"
"""Directories of a workplace that hold, under its destination's name, what stood there, or what is to stand there.

``swap-`` is followed by the number of the inode that was made to stand there: another one has come out.
"""


@contextmanager
def workplace(place: Path) -> Iterator[Path]:
    """A directory beside a place, which is removed in the end.

    It is locked while it is in use: a process that is killed leaves it behind, for the next one to clear.
    """
    prefix = f".{place.name[:40]}.partial-"
    clear_left_behind(place.parent, re.compile(rf"{re.escape(prefix)}[0-9a-f]{{8}}"))
    while True:
        made = place.parent / f"{prefix}{secrets.token_hex(4)}"
        try:
            made.mkdir()
            with locked(made) as free:
                if free is not False:  # no other process has taken it for left behind
                    yield made
                    return
        finally:
            _clear(made)


def clear_left_behind(parent: Path, pattern: re.Pattern[str]) -> None:
    """Remove the workplaces of a directory, by a pattern of their names, whose processes were killed."""
    for name in filter(pattern.fullmatch, os.listdir(parent)):
        left = parent / name
        with contextlib.suppress(OSError), locked(left) as free:  # neither a link nor a file has a lock
            if free and left.stat().st_uid == os.geteuid():
                _clear(left)


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


def _clear(left: Path) -> None:
    """Remove a workplace, except the user's files in it."""
    try:
        with uninterrupted():
            _clear_at_once(left)
    except BaseException:  # an interrupt that came before it could be held back
        with uninterrupted():
            _clear_at_once(left)
        raise


def _clear_at_once(left: Path) -> None:
    with contextlib.suppress(OSError):
        for inside in sorted(left.iterdir()):  # what is old comes before what would have replaced it
            if inside.is_symlink():
                continue  # not made here
            if inside.name == NEW or inside.name.startswith(f".{NEW}."):
                remove_tree(inside)
            elif inside.name == OLD or inside.name.startswith(SWAP):
                for directory in list(inside.iterdir()):
                    _settle(directory, left.parent / directory.name)
                inside.rmdir()
        left.rmdir()


def _settle(directory: Path, place: Path) -> None:
    """Restore the previous content of a place that is now empty; otherwise remove it, and unfinished new content."""
    if directory.is_symlink():
        return
    if directory.parent.name == f"{SWAP}{directory.lstat().st_ino}":
        remove_tree(directory)
    elif os.path.lexists(place):
        clear_replaced(directory, place)
    else:
        directory.rename(place)
