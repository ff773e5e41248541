"""An output directory that appears whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from specs.errors import UserError
from zoo.memory import readable_bytes

MANIFEST, CONVERSION = "export.json", "conversion.json"
"""The files that mark a directory as written here, an export or a checkpoint, which may therefore be replaced."""

_OLD = "old"


class DestinationError(UserError):
    """An output place that cannot be written, is too small, or holds something else."""


def check_destination(destination: Path, needed: int) -> None:
    """Raise :class:`DestinationError` unless a directory of so many bytes can be written or replaced there."""
    check_replaceable(destination)
    nearest = destination.absolute()
    while not os.path.lexists(nearest):
        nearest = nearest.parent
    if not nearest.is_dir():
        raise DestinationError(f"{nearest} is a file, not a directory\n  give another --output")
    disk = shutil.disk_usage(nearest)
    if (
        needed > disk.free and disk.total
    ):  # what has no size, such as /proc, is no disk, and refuses by itself
        raise DestinationError(
            f"{destination} needs {readable_bytes(needed)}, and its disk has {readable_bytes(disk.free)} free\n"
            f"  free some space, give an --output on another disk, or write the graph alone with --weights none"
        )
    with replacing(destination, keep=False):
        pass  # it can be written


def check_replaceable(destination: Path) -> None:
    """Raise :class:`DestinationError` unless the destination is absent, empty, or an earlier export."""
    with _refusals(destination):
        try:
            _check_own(destination, destination)
        except (FileNotFoundError, NotADirectoryError):
            if os.path.lexists(destination) and not destination.is_dir():
                raise DestinationError(
                    f"{destination} is a file, not a directory\n  give another --output"
                ) from None


def _check_own(directory: Path, destination: Path) -> None:
    names = os.listdir(directory)  # at once, as another process may be replacing it
    if names and MANIFEST not in names and CONVERSION not in names:
        raise DestinationError(
            f"{destination} holds files that zoo did not write, and would be replaced\n"
            f"  give another --output, or remove it"
        )


@contextmanager
def replacing(destination: Path, *, keep: bool = True) -> Iterator[Path]:
    """A new directory beside the destination, which takes its place when the block ends well (and it is to be kept).

    When the block fails, the new directory goes and the destination is as it was.  Raises
    :class:`DestinationError` where the place cannot be written.
    """
    check_replaceable(destination)
    with _refusals(destination):
        place = destination.resolve()
        with _parent(place), _workplace(place) as workplace:
            new = workplace / "new"
            new.mkdir()
            yield new
            while keep and not (_placed(new, place) or _replaced(new, place)):
                pass  # another process puts its own there


@contextmanager
def _parent(place: Path) -> Iterator[None]:
    """The directory around a place, which goes again if it was made for the place and stays empty."""
    there = place.parent.exists()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        if not there:
            with contextlib.suppress(OSError):  # it is not empty
                place.parent.rmdir()


@contextmanager
def _workplace(place: Path) -> Iterator[Path]:
    """A directory beside a place, which goes whatever happens.

    It is locked while it is in use: a process that is killed leaves it behind, for the next one to clear.
    """
    prefix = f".{place.name[:40]}.partial-"
    for left in place.parent.glob(f"{glob.escape(prefix)}*"):
        with _lock(left) as free:
            if free:
                _clear(left)
    token = secrets.token_hex(4)
    unlocked, workplace = place.parent / f".{token}", place.parent / f"{prefix}{token}"
    try:
        unlocked.mkdir()
        with _lock(unlocked):  # before it has a name that another process would clear
            try:
                unlocked.rename(workplace)
                yield workplace
            finally:
                _clear(workplace)
    finally:
        _clear(unlocked)


@contextmanager
def _lock(directory: Path) -> Iterator[bool]:
    """Hold the lock of a directory, which ends with the process; False where another has it, or there are none."""
    if sys.platform == "win32":
        yield False
        return
    import fcntl

    with contextlib.ExitStack() as closing:
        try:
            descriptor = os.open(directory, os.O_RDONLY)
            closing.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True


def _clear(workplace: Path) -> None:
    """Remove a workplace, but for what it holds of the destination while nothing stands there."""
    with contextlib.suppress(OSError):
        for old in (workplace / _OLD).glob("*"):
            _placed(old, workplace.parent / old.name)
    try:
        shutil.rmtree(workplace, ignore_errors=True)
    except BaseException:  # interrupted
        shutil.rmtree(workplace, ignore_errors=True)
        raise


def _placed(new: Path, place: Path) -> bool:
    """Move a directory to where there is nothing, or an empty directory; False where there is more."""
    try:
        new.rename(place)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def _replaced(new: Path, place: Path) -> bool:
    """Move an export that stands at a place aside, and another there; without that, clearing moves it back."""
    aside = new.parent / _OLD
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    with contextlib.suppress(FileNotFoundError):  # another process has just moved it
        place.rename(aside / place.name)
        _check_own(aside / place.name, place)
    return _placed(new, place)


@contextmanager
def _refusals(destination: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = "its disk is full" if full else error.strerror or str(error)
        remedy = "free some space, or give an --output on another disk" if full else "give another --output"
        raise DestinationError(f"{destination} cannot be written: {reason}\n  {remedy}") from error
