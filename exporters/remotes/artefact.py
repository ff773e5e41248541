"""An export for publishing: its own files, with their digests."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from specs.base.errors import UserError, option_name
from zoo.files.card import CARD
from zoo.files.destination import MANIFEST
from zoo.files.ownership import other_files, own_files
from zoo.files.reading import read_regular, unreadable
from zoo.record.integrity import check_integrity, file_record
from zoo.record.manifest import ExportRecord, read_record
from zoo.record.records import FileRecord


@dataclass(frozen=True)
class Artefact:
    """An export whose files are as recorded.

    ``files`` holds every file of the export, including its records and its signature; ``others`` names the user's own files
    in the directory.
    """

    record: ExportRecord
    files: Mapping[str, FileRecord]
    others: tuple[str, ...]

    @property
    def directory(self) -> Path:
        """Return the directory of the files."""
        return self.record.directory

    @property
    def digest(self) -> str:
        """The SHA-256 of its export.json, which names the export."""
        return self.files[MANIFEST].sha256

    @property
    def title(self) -> str:
        """The name of the model, the target and the precision."""
        manifest = self.record.manifest
        return f"{model_name(self.directory)} {manifest.target} {manifest.precision}"


def model_name(directory: Path) -> str:
    """Return the name of an export's model, from its spec."""
    from specs.language.load import load

    return load(directory / "spec.yaml").name


def read_artefact(directory: Path, *, unverified: bool = False) -> Artefact:
    """Return the export in a directory after comparing its digests with their record.

    Raises :class:`specs.base.errors.UserError` if a file has changed, and where the export was not verified, unless
    ``unverified`` allows that.
    """
    record = read_record(directory)
    changes = check_integrity(record, contents=True).changes
    if changes:
        raise UserError(
            f"{directory} has changed since it was exported: {changes[0]}.\n"
            "  Copy the directory again, or export the model again."
        )
    if not unverified and (record.verification is None or not record.verification.passed):
        reason = record.unproven or "it was exported without verification"
        raise UserError(
            f"{directory} has not been verified: {reason}.\n"
            f"  Export the model again with verification, or pass {option_name('unverified')}."
        )
    own = own_files(directory, MANIFEST)
    assert own is not None  # the manifest was read
    if os.path.lexists(directory / CARD):  # including an edited card
        own |= {CARD}
    files = {
        name: record.manifest.files.get(name) or file_record(directory / name, directory)
        for name in sorted(own)
    }
    others = tuple(name for name, is_directory in other_files(directory, own) if not is_directory)
    return Artefact(record, files, others)


def git_digest(path: Path) -> str:
    """Return git's object id for the contents of a file."""
    try:
        content = read_regular(path, path.parent)
    except OSError as error:
        raise UserError(unreadable(path, error)) from None
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
