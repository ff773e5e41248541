"""An output directory that appears whole or not at all, and keeps the user's own files."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from specs.base.errors import UserError
from zoo.core.units import byte_text
from zoo.files.card import CARD
from zoo.files.carrying import carry, clear_replaced
from zoo.files.exchange import exchange
from zoo.files.interrupts import uninterrupted
from zoo.files.ownership import CONVERSION, MANIFEST, own_files
from zoo.files.parents import parents_of
from zoo.files.sync import sync, sync_tree
from zoo.files.workplace import OLD, locked, new_directory, workplace

__all__ = [
    "CONVERSION", "MANIFEST", "DestinationError", "check_destination", "check_replaceable", "replacing",
]  # fmt: skip

_KINDS = {MANIFEST: "an export", CONVERSION: "a converted checkpoint"}


class DestinationError(UserError):
    """An output directory cannot be written, has too little space, or holds something else."""


def check_destination(destination: Path, needed: int) -> None:
    """Raise :class:`DestinationError` unless an export of ``needed`` bytes can be written or replaced there."""
    check_replaceable(destination)
    nearest = destination.absolute()
    while not os.path.lexists(nearest):
        nearest = nearest.parent
    if not nearest.is_dir():
        raise _not_a_directory(nearest)
    disk = shutil.disk_usage(nearest)
    if (
        needed > disk.free and disk.total
    ):  # a file system without a size, such as /proc, refuses writes anyway
        raise DestinationError(
            f"{destination} needs {byte_text(needed)}, and its disk has {byte_text(disk.free)} free.\n"
            f"  Free some space, choose a directory on another disk, or write the graph without weights."
        )
    with replacing(destination, keep=False):
        pass  # it can be written


def check_replaceable(destination: Path, manifest: str = MANIFEST) -> None:
    """Raise :class:`DestinationError` unless the destination is absent, empty, or has a manifest of zoo's.

    Nor may it be a mount point, the working directory, or a directory above that.
    """
    with reported_refusals(destination):
        path = _real_path(destination)
        if manifest == MANIFEST and not is_text(path):
            raise DestinationError(
                f"{str(destination)!a}: the path of an export must be UTF-8, because ONNX Runtime opens no other.\n"
                f"  value: {str(path)!a}\n  Choose a directory whose whole path is UTF-8."
            )
        try:
            _check_own(path, destination, manifest)
        except (FileNotFoundError, NotADirectoryError):
            if os.path.lexists(destination) and not destination.is_dir():
                raise _not_a_directory(destination) from None


@contextmanager
def replacing(destination: Path, manifest: str = MANIFEST, *, keep: bool = True) -> Iterator[Path]:
    """Yield a new directory next to the destination, which replaces it when the block succeeds (and ``keep`` is set).

    Files that an earlier manifest lists are replaced; all others in the destination are carried along, and a
    model card that the user wrote or edited replaces the new one. When the block fails, the new directory is removed and the destination is unchanged. If the process is killed at any moment,
    either the old or the new directory is there, whole, where the system can exchange two directories in one step
    (Linux on the usual file systems). Raises :class:`DestinationError` if the destination cannot be written or
    replaced.
    """
    check_replaceable(destination, manifest)
    with reported_refusals(destination):
        path = _real_path(destination)
        with parents_of(path), workplace(path) as directory:
            new = new_directory(directory)
            yield new
            if keep:
                sync_tree(new)
                _put(new, path, destination, manifest)


def _real_path(destination: Path) -> Path:
    """The real path of a destination. Raises :class:`DestinationError` for a directory that cannot be replaced."""
    path = Path(os.path.realpath(destination))
    remedy = f"Choose a directory in it, such as {destination / 'out'}."
    with contextlib.suppress(FileNotFoundError):  # the working directory is gone
        working = Path.cwd().resolve()
        if working == path:
            raise DestinationError(
                f"{destination} is the working directory, which zoo does not replace.\n  {remedy}"
            )
        if working.is_relative_to(path):
            raise DestinationError(
                f"{destination} contains the working directory, and zoo does not replace it.\n  {remedy}"
            )
    if os.path.ismount(path):
        raise DestinationError(f"{destination} is a mount point, which cannot be replaced.\n  {remedy}")
    return path


def _put(new: Path, path: Path, destination: Path, manifest: str) -> None:
    """Move a directory to its destination, or replace the earlier output there."""
    with contextlib.suppress(FileNotFoundError):
        shutil.copymode(path, new)
    while not _placed(new, path):
        with locked(path, wait=True) as held, locked(new):
            if held is False:
                continue  # another process has replaced it meanwhile
            own = _check_own(path, destination, manifest)
            _carry(path, new, own, destination, manifest)
            with uninterrupted():
                _replace(new, path, destination)
            return


def _placed(new: Path, path: Path) -> bool:
    """Move a directory to a path that is absent or empty; False if it is neither."""
    try:
        new.rename(path)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    sync(path.parent)
    return True


def _carry(path: Path, new: Path, own: frozenset[str], destination: Path, manifest: str) -> None:
    try:
        if CARD not in own and os.path.lexists(path / CARD):
            (new / CARD).unlink(missing_ok=True)
        blocked = carry(path, new, own)
    except OSError as error:
        file = destination / os.path.relpath(error.filename or path, path)
        raise DestinationError(
            f"{file} cannot be carried along: {error.strerror or error}.\n  Move it, or choose another directory."
        ) from error
    if blocked:
        raise DestinationError(
            f"{destination / blocked[0]} is not listed in {manifest}, and stands where zoo writes a file of its own.\n"
            f"  Move it, or choose another directory."
        )


def _replace(new: Path, path: Path, destination: Path) -> None:
    """Exchange a new directory with the old one, and remove the old one.

    If the system cannot exchange directories, the old one is moved aside first; after a kill in between, the next run
    restores it.
    """
    old = new
    if not exchange(new, path):
        old = path.rename(new.with_name(OLD))
        try:
            new.rename(path)
        except OSError as error:
            try:
                old.rename(path)
            except OSError:
                raise DestinationError(
                    f"{destination} cannot be written: {error.strerror}.\n"
                    f"  The earlier directory is in {old}: move it back, and choose another directory."
                ) from error
            raise
    sync(path.parent)
    with contextlib.suppress(OSError):  # the next run clears what could not be removed
        clear_replaced(old, path, just_now=True)


def _check_own(path: Path, destination: Path, manifest: str) -> frozenset[str]:
    """The files that an earlier manifest lists.  Raises :class:`DestinationError` for other directories with files."""
    own = own_files(path, manifest)
    if own is None and os.listdir(path):
        other = next((kind for name, kind in _KINDS.items() if own_files(path, name) is not None), None)
        reason = (
            f"holds {other}, which {_KINDS[manifest]} does not replace"
            if other
            else f"holds files and no valid {manifest}, so zoo did not write it"
        )
        raise DestinationError(f"{destination} {reason}.\n  Choose another directory, or remove this one.")
    return own or frozenset()


def _not_a_directory(path: Path) -> DestinationError:
    return DestinationError(f"{path} is a file, not a directory.\n  Choose another directory.")


def is_text(path: Path) -> bool:
    """Whether a path is UTF-8."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def reported_refusals(destination: Path) -> Iterator[None]:
    """Raise :class:`DestinationError` with a remedy where the system refuses to write to a directory."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = "its disk is full" if full else error.strerror or str(error)
        remedy = (
            "Free some space, or choose a directory on another disk." if full else "Choose another directory."
        )
        raise DestinationError(f"{destination} cannot be written: {reason}.\n  {remedy}") from error
