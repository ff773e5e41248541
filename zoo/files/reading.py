"""Reading files that may be anyone's: regular files of a bounded size, and in a directory only those that lie in it.

A link is followed only to a file in the same directory, or from a snapshot in the hub's cache to the contents that the cache
holds for it.  A file that the user names directly may be a link to any regular file.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Literal, overload

LARGEST = 2**28
"""The largest file that is read or copied whole, in bytes; the largest tokenizers have 40 MB."""

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
_BLOCK = 2**20
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_FILE = _READ | getattr(os, "O_NONBLOCK", 0)  # a pipe would wait for a writer
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
_HUB = ("models--", "datasets--", "spaces--")

COPY_AGAIN = "\n  Copy the file again from where it came."
"""The remedy for a damaged file, as the last line of a message."""


class UnsafeFileError(OSError):
    """A file that is not read: it is not regular, too large, or lies outside its directory; ``remedy`` says what to do."""

    def __init__(self, path: Path, reason: str, remedy: str, number: int = errno.EINVAL) -> None:
        super().__init__(number, reason, str(path))
        self.remedy = remedy


def kind_of(mode: int) -> str | None:
    """Return the kind of file that a mode is of, such as "a pipe"; None for a regular one."""
    kind = stat.S_IFMT(mode)
    return None if kind == stat.S_IFREG else _KINDS.get(kind, "not a regular file")


@overload
def open_regular(path: Path, within: Path | None = None) -> BufferedReader: ...


@overload
def open_regular(path: Path, within: Path | None = None, *, buffering: Literal[0]) -> FileIO: ...


def open_regular(
    path: Path, within: Path | None = None, *, buffering: Literal[-1, 0] = -1
) -> BufferedReader | FileIO:
    """Open a regular file for reading, which must lie in the directory ``within``, if given.

    Never waits for a pipe, and follows no link that appears meanwhile.  Raises OSError, and :class:`UnsafeFileError` for other
    files.
    """
    try:
        descriptor = _descriptor(path, within)
    except ValueError as error:  # a name that no file system has
        raise OSError(errno.EINVAL, str(error), ascii(str(path))) from None
    try:
        _check_kind(path, os.fstat(descriptor).st_mode)
        file = FileIO(descriptor, "rb")
        return BufferedReader(file) if buffering else file
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, within: Path | None = None, most: int = LARGEST) -> bytes:
    """Return the bytes of a file of at most ``most`` bytes.  Raises as :func:`open_regular`."""
    with open_regular(path, within) as file:
        _check_size(path, os.fstat(file.fileno()).st_size, most)
        content = file.read(most + 1)
    _check_size(path, len(content), most)
    return content


def copy_regular(source: Path, target: Path, within: Path | None, most: int = LARGEST) -> None:
    """Copy a file of at most ``most`` bytes to a new path.  Raises as :func:`open_regular`."""
    done = 0
    with open_regular(source, within) as read:
        _check_size(source, os.fstat(read.fileno()).st_size, most)
        with target.open("xb") as written:
            while block := read.read(_BLOCK):
                done += len(block)
                _check_size(source, done, most)
                written.write(block)


def check_regular(path: Path, within: Path | None = None) -> None:
    """Raise as :func:`open_regular` if a file must not be read."""
    open_regular(path, within, buffering=0).close()


def unreadable(path: Path, error: OSError, remedy: str = "Check the path.") -> str:
    """Return the message for a file that cannot be read: its path, the reason and a remedy."""
    remedy = error.remedy if isinstance(error, UnsafeFileError) else remedy
    return f"{path} cannot be read: {error.strerror or error}.\n  {remedy}"


def _descriptor(path: Path, within: Path | None) -> int:
    if within is None:
        _check_kind(path, os.stat(path).st_mode)
        return os.open(path, _FILE)
    real = Path(os.path.realpath(path, strict=True))
    base = _base(path, real, Path(os.path.realpath(within)))
    *parents, name = real.relative_to(base).parts or (".",)
    if os.open not in os.supports_dir_fd:
        _check_kind(path, real.stat().st_mode)
        return os.open(real, _FILE)
    directory = os.open(base, _DIRECTORY)
    try:
        for parent in parents:
            inner = os.open(parent, _DIRECTORY, dir_fd=directory)
            os.close(directory)
            directory = inner
        _check_kind(path, os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
        return os.open(name, _FILE | _NO_LINK, dir_fd=directory)
    finally:
        os.close(directory)


def _base(path: Path, real: Path, root: Path) -> Path:
    """Return the directory that a file may be in and is in: its own, or the contents of its repository in the hub's cache."""
    for base in (root, *_contents(root)):
        if real.is_relative_to(base):
            return base
    raise UnsafeFileError(
        path,
        f"it is a link out of its directory, to {real}",
        "Replace the link by the file; cp -rL copies a directory and does so.",
    )


def _contents(root: Path) -> list[Path]:
    """Return the directory of the contents that belong to a snapshot in the hub's cache; empty for other directories."""
    for directory in (root, *root.parents):
        repository = directory.parent.parent
        if directory.parent.name == "snapshots" and repository.name.startswith(_HUB):
            return [repository / "blobs"]
    return []


def _check_kind(path: Path, mode: int) -> None:
    if kind := kind_of(mode):
        number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise UnsafeFileError(
            path, f"it is {kind}, and only regular files are read", "Replace it by a regular file.", number
        )


def _check_size(path: Path, size: int, most: int) -> None:
    if size > most:
        raise UnsafeFileError(
            path,
            f"it has more than {most // 2**20:,} MiB, the most that is read of such a file",
            "Check that it is the right file.",
            errno.EFBIG,
        )
