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

from specs.errors import UserError
from zoo.destination import MANIFEST
from zoo.manifest import Manifest
from zoo.records import FileRecord, TensorRecord

CHEAP = 2 * 10**9
"""The largest export in bytes whose digests are compared by default: a few seconds."""

BLOCK = 2**20
_LISTED = 3


@dataclass(frozen=True)
class Change:
    """A file that differs from its record; ``tensors`` names its changed weights."""

    file: str
    kind: Literal["missing", "size", "contents"]
    recorded: int
    found: int
    tensors: tuple[str, ...] = ()

    def __str__(self) -> str:
        match self.kind:
            case "missing":
                return f"{self.file} is missing"
            case "size":
                return f"{self.file} has {self.found:,} bytes, and {MANIFEST} records {self.recorded:,}"
        if not self.tensors:
            return f"{self.file} has other contents than {MANIFEST} records"
        more = f" and {len(self.tensors) - _LISTED} more" if len(self.tensors) > _LISTED else ""
        return f"{self.file} has other contents than {MANIFEST} records: {', '.join(self.tensors[:_LISTED])}{more}"

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
            "changes": [each.as_dict() for each in self.changes],
        }


def check_sizes(directory: Path, manifest: Manifest) -> None:
    """Raise :class:`specs.errors.UserError` where a graph, or a file of weights, is missing or has another size."""
    found = [
        change for name in manifest.model_files if (change := _sized(directory, name, manifest.files[name]))
    ]
    if found:
        raise UserError(
            f"{directory} has changed since it was exported: {found[0]}\n"
            "  Copy the directory again, or export the model again."
        )


def check_integrity(directory: Path, manifest: Manifest, *, contents: bool | None = None) -> Integrity:
    """Compare the files with their record: sizes, and with ``contents`` digests (default: up to ``CHEAP`` bytes)."""
    if contents is None:
        contents = sum(file.size for file in manifest.files.values()) <= CHEAP
    changes = []
    with ThreadPoolExecutor(os.cpu_count()) as threads:  # hashing leaves the interpreter free
        digests = {
            name: threads.submit(sha256_of, directory / name)
            for name, file in manifest.files.items()
            if contents and _sized(directory, name, file) is None
        }
        for name, file in manifest.files.items():
            if (change := _sized(directory, name, file)) is not None:
                changes.append(change)
            elif name in digests and digests[name].result() != file.sha256:
                changed = tuple(changed_tensors(directory / name, manifest.tensors.get(name, {})))
                changes.append(Change(name, "contents", file.size, file.size, changed))
    return Integrity(tuple(changes), contents)


def _sized(directory: Path, name: str, file: FileRecord) -> Change | None:
    """How a file's size is not as recorded; None where it is."""
    path = directory / name
    if not path.is_file():
        return Change(name, "missing", file.size, 0)
    found = path.stat().st_size
    return None if found == file.size else Change(name, "size", file.size, found)


def changed_tensors(path: Path, tensors: Mapping[str, TensorRecord]) -> dict[str, str]:
    """The digests of the weights in a data file that are not as recorded, by name."""
    with _opened(path) as file:
        digests = {name: _part(file, tensor.offset, tensor.length) for name, tensor in tensors.items()}
    return {name: digest for name, digest in digests.items() if digest != tensors[name].sha256}


def file_record(path: Path) -> FileRecord:
    """The size and the SHA-256 of a file.  Raises :class:`specs.errors.UserError` where it cannot be read."""
    return FileRecord(size=path.stat().st_size, sha256=sha256_of(path))


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file.  Raises :class:`specs.errors.UserError` where it cannot be read."""
    with _opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _opened(path: Path) -> FileIO:
    try:
        return path.open("rb", buffering=0)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


def _part(file: FileIO, offset: int, length: int) -> str:
    file.seek(offset)
    digest = hashlib.sha256()
    while length and (block := file.read(min(length, BLOCK))):
        digest.update(block)
        length -= len(block)
    return digest.hexdigest()
