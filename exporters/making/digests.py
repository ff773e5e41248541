"""Digests of files, remembered by size and modification time, so that no file is read twice."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

from specs.base.errors import UserError
from zoo.files.json_values import read_object
from zoo.files.reading import open_regular, unreadable
from zoo.files.whole import write_file
from zoo.record.integrity import sha256_of

_RACY = 2 * 10**9
"""Nanoseconds within which a second change may leave a file's modification time unchanged."""

_UNREAD = (".md", ".lock", ".gitattributes", ".gitignore")
"""Endings of files in a checkpoint's directory that no export reads."""


class FileDigests:
    """The digests of files, and a memory of them in a file of the cache."""

    def __init__(self, memory: Path) -> None:
        self._memory = memory
        self._known: dict[str, Any] = _read(memory)
        self._changed = False

    def of(self, place: Path) -> str:
        """Return the SHA-256 of a file, or of the names and contents of the files in a directory.

        Raises :class:`specs.base.errors.UserError` where a file cannot be read.
        """
        if not place.is_dir():
            return self._file(place, None)
        digest = hashlib.sha256()
        for path in sorted(_files(place)):
            name = os.fsencode(path.relative_to(place).as_posix())
            digest.update(name + f"\0{self._file(path, place)}\n".encode())
        return digest.hexdigest()

    def _file(self, path: Path, within: Path | None) -> str:
        try:
            with open_regular(path, within, buffering=0) as opened:
                found = os.fstat(opened.fileno())
        except OSError as error:
            raise UserError(unreadable(path, error)) from None
        real = os.path.realpath(path)
        stamp = [found.st_size, found.st_mtime_ns, found.st_ino]
        known = self._known.get(real)
        if isinstance(known, list) and len(known) == 4 and known[:3] == stamp:
            return str(known[3])
        digest = sha256_of(path, within)
        if time.time_ns() - found.st_mtime_ns > _RACY:
            self._known[real] = [*stamp, digest]
            self._changed = True
        return digest

    def save(self) -> None:
        """Save the digests, except those of files that no longer exist."""
        if self._changed:
            kept = {path: known for path, known in self._known.items() if os.path.exists(path)}
            with contextlib.suppress(OSError):  # the digests are computed again
                self._memory.parent.mkdir(parents=True, exist_ok=True)
                write_file(self._memory, json.dumps(kept, indent=0).encode())
            self._changed = False


def _files(directory: Path) -> list[Path]:
    """Return the files in a directory that an export may read; hidden files are skipped."""
    found = []
    for parent, directories, names in os.walk(directory):
        directories[:] = [name for name in directories if not name.startswith(".")]
        found += [
            Path(parent, name) for name in names if not name.startswith(".") and not name.endswith(_UNREAD)
        ]
    return found


def _read(memory: Path) -> dict[str, Any]:
    try:
        return read_object(memory, UserError)
    except UserError:
        return {}
