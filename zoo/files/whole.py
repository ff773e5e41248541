"""A file that appears whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path

from zoo.files.reading import kind_of
from zoo.files.sync import sync

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def write_file(path: Path, content: bytes) -> None:
    """Write a file atomically in an existing directory; an existing regular file is replaced and keeps its permissions.

    Raises OSError, with nothing changed, where the file cannot be written or the existing one is not a regular file.
    """
    mode = _replaceable_mode(path)
    partial = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(partial, _NEW, 0o666)
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        if mode is not None:
            os.chmod(partial, mode)
        _replaceable_mode(path)  # a link may have appeared
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    sync(path.parent)


def irregular(path: Path) -> str | None:
    """Return the kind of file at a path, such as "a symbolic link"; None for a regular file or nothing."""
    try:
        return kind_of(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _replaceable_mode(path: Path) -> int | None:
    """The permissions of the regular file at a path; None where there is none."""
    if kind := irregular(path):
        raise OSError(errno.EEXIST, f"It is {kind}", str(path))
    try:
        return stat.S_IMODE(path.lstat().st_mode)
    except FileNotFoundError:
        return None
