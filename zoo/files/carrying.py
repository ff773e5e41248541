"""Carrying a user's files from a replaced directory to its replacement."""

from __future__ import annotations

import contextlib
import errno
import filecmp
import os
import shutil
from pathlib import Path, PurePosixPath

from zoo.files.ownership import CONVERSION, MANIFEST, entries, other_files, own_files
from zoo.files.sync import sync

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS}


def carry(old: Path, new: Path, own: frozenset[str]) -> list[str]:
    """Link the foreign files of an old directory into a new one; return the paths that are already occupied.

    Files are copied if the file system has no hard links.  Raises OSError.
    """
    blocked, made = [], []
    for path, is_directory in other_files(old, own):
        needed = PurePosixPath(path) if is_directory else PurePosixPath(path).parent
        try:
            for directory in (*reversed(needed.parents[:-1]), needed):
                if _made(new / directory):
                    made.append(directory)
            if not (is_directory or _linked(old / path, new / path)):
                blocked.append(path)
        except (FileExistsError, NotADirectoryError):
            blocked.append(path)
    for directory in reversed(made):
        shutil.copystat(old / directory, new / directory)
        sync(new / directory)
    return blocked


def _made(directory: Path) -> bool:
    """Make a missing directory; False if it exists.  Raises FileExistsError if it is a link."""
    if directory.is_dir() and not directory.is_symlink():
        return False
    directory.mkdir()
    return True


def _linked(old: Path, new: Path) -> bool:
    """Give a file another name; False if something else has that."""
    if os.path.lexists(new):
        return same(old, new)
    try:
        os.link(old, new, follow_symlinks=False)
    except FileNotFoundError:  # removed since it was listed
        pass
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copy2(old, new, follow_symlinks=False)
        sync(new)
    return True


def same(first: Path, second: Path) -> bool:
    """Whether two paths are names of one file, or of files with the same content."""
    try:
        if os.path.samestat(first.lstat(), second.lstat()):
            return True
        if first.is_symlink() and second.is_symlink():
            return os.readlink(first) == os.readlink(second)
        regular = [path.is_file() and not path.is_symlink() for path in (first, second)]
        return all(regular) and filecmp.cmp(first, second, shallow=False)
    except OSError:
        return False


def clear_replaced(old: Path, new: Path, *, just_now: bool = False) -> None:
    """Remove a replaced directory: zoo's own files, and the user's files that the new directory holds as well.

    Files of the user that the new directory lacks are carried there.  A file that differs was saved during the
    replacement: it replaces the new directory's file if that was ``just_now``, and otherwise stays.  Raises OSError.
    """
    manifests = [name for name in (MANIFEST, CONVERSION) if not _is_one_file(old / name, new / name)]
    own = _listed(old, manifests)
    for path in carry(old, new, own):
        if just_now and path not in _listed(new, manifests):
            with contextlib.suppress(OSError):
                os.replace(old / path, new / path)
    directories = []
    for path, entry in list(entries(old)):
        if entry.is_dir(follow_symlinks=False):
            directories.append(old / path)
            os.chmod(old / path, 0o700)
        elif path not in manifests and (path in own or same(old / path, new / path)):
            (old / path).unlink(missing_ok=True)
    for directory in reversed(directories):
        _remove_empty(directory)
    for name in own.intersection(manifests):  # last, as they tell what is ours
        (old / name).unlink(missing_ok=True)
    _remove_empty(old)


def _listed(directory: Path, manifests: list[str]) -> frozenset[str]:
    return frozenset[str]().union(*(own_files(directory, name) or () for name in manifests))


def _is_one_file(first: Path, second: Path) -> bool:
    try:
        return os.path.samestat(first.lstat(), second.lstat())
    except OSError:
        return False


def _remove_empty(directory: Path) -> None:
    with contextlib.suppress(OSError):  # something is left in it
        directory.rmdir()


def remove_tree(directory: Path) -> None:
    """Remove a directory that zoo made, and everything in it; links are not followed."""
    shutil.rmtree(directory, ignore_errors=True)
    if directory.is_dir():  # a directory that was carried there may be closed to writing
        for inner, _, _ in os.walk(directory):
            with contextlib.suppress(OSError):
                os.chmod(inner, 0o700)
        shutil.rmtree(directory, ignore_errors=True)
