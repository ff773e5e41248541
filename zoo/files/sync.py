"""Putting files and directories on the disk, so that a power failure leaves them whole."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

_UNSUPPORTED = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.ENOSYS}


def sync(path: Path) -> None:
    """Flush a file, or the names in a directory.  Raises OSError if the disk fails."""
    if sys.platform == "win32" and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:  # a full disk may show here first; some file systems flush nothing
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(descriptor)


def sync_tree(directory: Path) -> None:
    """Flush every regular file below a directory, and every directory after what it holds."""
    for inner, _, names in os.walk(directory, topdown=False):
        for name in names:
            file = Path(inner, name)
            if not file.is_symlink():
                sync(file)
        sync(Path(inner))
