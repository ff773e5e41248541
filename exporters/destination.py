"""An output directory that appears whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from specs.errors import UserError

MANIFEST = "export.json"
"""The file that marks a directory as written here, which may therefore be replaced."""


class DestinationError(UserError):
    """An output place that cannot be written, is too small, or holds something else."""


def check_replaceable(destination: Path) -> None:
    """Raise :class:`DestinationError` unless the destination is absent, empty, or an earlier export."""
    if not os.path.lexists(destination):
        return
    if not destination.is_dir():
        raise DestinationError(f"{destination} is a file, not a directory\n  give another --output")
    if any(destination.iterdir()) and not (destination / MANIFEST).is_file():
        raise DestinationError(
            f"{destination} holds files that zoo did not write, and would be replaced\n"
            f"  give another --output, or remove it"
        )


def check_space(destination: Path, needed: int) -> None:
    """Raise :class:`DestinationError` unless the disk of the destination has so many bytes free."""
    place = destination.absolute()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if needed > free:
        raise DestinationError(
            f"{destination} needs {readable_bytes(needed)}, and its disk has {readable_bytes(free)} free\n"
            f"  free some space, give an --output on another disk, or write the graph alone with --weights none"
        )


@contextmanager
def replacing(destination: Path) -> Iterator[Path]:
    """A new directory beside the destination, which takes its place when the block ends well.

    When the block fails, the new directory goes and the destination is as it was.  Raises
    :class:`DestinationError` where the place cannot be written.
    """
    check_replaceable(destination)
    partial = destination.parent / f".{destination.name}.partial-{os.getpid()}"
    with _refusals(destination):
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        try:
            yield partial
            _swap(partial, destination)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _swap(new: Path, destination: Path) -> None:
    old = destination.parent / f".{destination.name}.old-{os.getpid()}"
    replaced = destination.exists()
    if replaced:
        destination.rename(old)
    try:
        new.rename(destination)
    except BaseException:
        if replaced:
            old.rename(destination)
        raise
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _refusals(destination: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            reason, remedy = "its disk is full", "free some space, or give an --output on another disk"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG):
            reason, remedy = error.strerror or str(error), "give another --output"
        else:
            raise
        raise DestinationError(f"{destination} cannot be written: {reason}\n  {remedy}") from error


def readable_bytes(count: float) -> str:
    """A number of bytes in decimal units: 498 MB."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.0f} {unit}" if unit == "bytes" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError
