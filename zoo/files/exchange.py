"""Exchanging two directories in one step of the file system."""

from __future__ import annotations

import errno
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM}  # the last in some sandboxes


def exchange(first: Path, second: Path) -> bool:
    """Exchange two paths atomically; False if the system or the file system cannot.

    Raises OSError if one of them is missing, or may not be moved.
    """
    rename = _renameat2()
    if rename is None:
        return False
    number = rename(os.fsencode(first), os.fsencode(second))
    if number in _UNSUPPORTED:
        return False
    if number:
        raise OSError(number, os.strerror(number), str(first), None, str(second))
    return True


@functools.cache
def _renameat2() -> Callable[[bytes, bytes], int] | None:
    """Linux's ``renameat2`` with the flag that exchanges, giving an error number; None if there is none."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # a C library of before 2018, or musl
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)

    def rename(first: bytes, second: bytes) -> int:
        failed = function(_AT_FDCWD, first, _AT_FDCWD, second, _RENAME_EXCHANGE)
        return ctypes.get_errno() if failed else 0

    return rename
