"""A file that appears whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
import time
from pathlib import Path

from zoo.files.reading import kind_of, open_regular
from zoo.files.sync import sync

_JUST_MADE = 60
"""Seconds in which a new file may not be locked yet."""

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def write_file(path: Path, content: bytes) -> None:
    """Write a file atomically in an existing directory; an existing regular file is replaced and keeps its permissions.

    Raises OSError, with nothing changed, where the file cannot be written or the existing one is not a regular file.
    """
    mode = _replaceable_mode(path)
    prefix = f".{path.name[:40]}."
    _clear_left_behind(path.parent, prefix)
    partial = path.with_name(f"{prefix}{secrets.token_hex(8)}")
    try:
        descriptor = os.open(partial, _NEW, 0o666)
        with open(descriptor, "wb") as file:
            _lock(descriptor)
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


def _clear_left_behind(directory: Path, prefix: str) -> None:
    """Remove what processes that were killed had written of a file: their locks are gone."""
    pattern = re.compile(rf"{re.escape(prefix)}[0-9a-f]{{16}}")
    for name in filter(pattern.fullmatch, os.listdir(directory)):
        with contextlib.suppress(OSError), open_regular(directory / name, directory) as file:
            status = os.fstat(file.fileno())
            ours = sys.platform == "win32" or status.st_uid == os.geteuid()
            if (
                ours
                and time.time() - status.st_mtime > _JUST_MADE
                and _lock(file.fileno())
                and not (directory / name).is_symlink()
            ):
                (directory / name).unlink()


def _lock(descriptor: int) -> bool:
    """Lock a file until it is closed; False if another process has it, or there are no locks."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def irregular(path: Path) -> str | None:
    """Return the kind of file at a path, such as "a symbolic link"; None for a regular file or nothing."""
    try:
        return kind_of(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _replaceable_mode(path: Path) -> int | None:
    """The permissions of the regular file at a path; None if there is none."""
    if kind := irregular(path):
        raise OSError(errno.EEXIST, f"It is {kind}", str(path))
    try:
        return stat.S_IMODE(path.lstat().st_mode)
    except FileNotFoundError:
        return None
