"""Whether the files of an export are still the ones that it recorded, and that were verified."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Literal

from specs.base.errors import UserError
from zoo.files.destination import MANIFEST
from zoo.files.ownership import BUILD, PROBE
from zoo.files.reading import open_regular, unreadable
from zoo.record.manifest import ExportRecord, Manifest
from zoo.record.records import FileRecord, TensorRecord

CHEAP = 2 * 10**9
"""The largest export in bytes whose digests are compared by default: a few seconds."""

BLOCK = 2**18
_LISTED = 3


@dataclass(frozen=True)
class Change:
    """A file that differs from its record; ``tensors`` names its changed weights, ``reason`` says why it cannot be read."""

    file: str
    kind: Literal["missing", "irregular", "size", "contents"]
    recorded: int
    size: int
    tensors: tuple[str, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        match self.kind:
            case "missing":
                return f"{self.file} is missing"
            case "irregular":
                return f"{self.file} cannot be read: {self.reason}"
            case "size":
                return f"{self.file} has {self.size:,} bytes, and {self._recorder} records {self.recorded:,}"
        if not self.tensors:
            return f"{self.file} has other contents than {self._recorder} records"
        more = f" and {len(self.tensors) - _LISTED} more" if len(self.tensors) > _LISTED else ""
        return f"{self.file} has other contents than {MANIFEST} records: {', '.join(self.tensors[:_LISTED])}{more}"

    @property
    def _recorder(self) -> str:
        return BUILD if self.file == PROBE else MANIFEST

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {"file": self.file, "kind": self.kind, "tensors": list(self.tensors)}


@dataclass(frozen=True)
class Integrity:
    """The files that differ from their records; ``contents`` says whether digests were compared, or only sizes."""

    changes: tuple[Change, ...]
    contents: bool

    @property
    def intact(self) -> bool:
        """Whether no file has changed, as far as was compared."""
        return not self.changes

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "intact": self.intact,
            "contents_compared": self.contents,
            "changes": [change.as_dict() for change in self.changes],
        }


def check_sizes(directory: Path, manifest: Manifest) -> None:
    """Raise :class:`specs.base.errors.UserError` if a graph, or a file of weights, is missing or has another size."""
    changes = [
        change for name in manifest.model_files if (change := _sized(directory, name, manifest.files[name]))
    ]
    if changes:
        raise UserError(
            f"{directory} has changed since it was exported: {changes[0]}\n"
            "  Copy the directory again, or export the model again."
        )


def check_integrity(record: ExportRecord, *, contents: bool | None = None) -> Integrity:
    """Compare every file that is named with its record: sizes, and with ``contents`` digests (default: up to ``CHEAP`` bytes).

    Links out of the directory, pipes and devices count as changed.
    """
    directory, manifest, files = record.directory, record.manifest, record.files
    if contents is None:
        contents = sum(file.size for file in files.values()) <= CHEAP
    changes = []
    with ThreadPoolExecutor(os.cpu_count()) as threads:  # hashing leaves the interpreter free
        digests = {
            name: threads.submit(sha256_of, directory / name, directory)
            for name, file in files.items()
            if contents and _sized(directory, name, file) is None
        }
        for name, file in files.items():
            if (change := _sized(directory, name, file)) is not None:
                changes.append(change)
            elif name in digests and digests[name].result() != file.sha256:
                changed = tuple(changed_tensors(directory / name, manifest.tensors.get(name, {}), directory))
                changes.append(Change(name, "contents", file.size, file.size, changed))
    return Integrity(tuple(changes), contents)


def _sized(directory: Path, name: str, file: FileRecord) -> Change | None:
    """The difference of a file's size from the record; None if it has none."""
    try:
        with open_regular(directory / name, directory, buffering=0) as opened:
            size = os.fstat(opened.fileno()).st_size
    except (FileNotFoundError, NotADirectoryError):
        return Change(name, "missing", file.size, 0)
    except OSError as error:
        return Change(name, "irregular", file.size, 0, reason=error.strerror or str(error))
    return None if size == file.size else Change(name, "size", file.size, size)


def changed_tensors(path: Path, tensors: Mapping[str, TensorRecord], within: Path | None) -> dict[str, str]:
    """The digests of the weights in a data file that are not as recorded, by name."""
    with _opened(path, within) as file:
        digests = {name: _part(file, tensor.offset, tensor.length) for name, tensor in tensors.items()}
    return {name: digest for name, digest in digests.items() if digest != tensors[name].sha256}


def file_record(path: Path, within: Path | None = None) -> FileRecord:
    """The size and the SHA-256 of a regular file, which must lie in the directory ``within``, if given.

    Raises :class:`specs.base.errors.UserError` if it cannot be read.
    """
    with _opened(path, within) as file:
        return FileRecord(size=os.fstat(file.fileno()).st_size, sha256=_digest(file))


def sha256_of(path: Path, within: Path | None = None) -> str:
    """The SHA-256 of a file.  Raises as :func:`file_record`."""
    with _opened(path, within) as file:
        return _digest(file)


def _digest(file: FileIO) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()


def _opened(path: Path, within: Path | None) -> FileIO:
    try:
        return open_regular(path, within, buffering=0)
    except OSError as error:
        raise UserError(unreadable(path, error)) from None


def _part(file: FileIO, offset: int, length: int) -> str:
    file.seek(offset)
    digest = hashlib.sha256()
    while length and (block := file.read(min(length, BLOCK))):
        digest.update(block)
        length -= len(block)
    return digest.hexdigest()
