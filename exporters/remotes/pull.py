"""Fetching a published export and checking its digests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from exporters.remotes.remote import Remote, RemoteFile
from specs.base.errors import UserError
from zoo.core.progress import Progress
from zoo.files.card import CARD
from zoo.files.destination import MANIFEST, replacing
from zoo.files.linking import link_file
from zoo.files.ownership import BESIDE
from zoo.files.reading import LARGEST
from zoo.record.integrity import check_integrity, file_record
from zoo.record.manifest import ExportRecord, Manifest, read_manifest, read_record
from zoo.record.records import FileRecord


def pull(remote: Remote, destination: Path, progress: Progress = lambda stage: None) -> Manifest:
    """Write a published export to a directory, which appears complete or not at all; return its manifest.

    Only the records and the files that export.json lists are fetched, except files that an earlier export at the
    destination already has. Raises :class:`specs.base.errors.UserError` if there is no export, or a file does not match its
    record.
    """
    listing = remote.listing()
    if MANIFEST not in listing:
        raise UserError(f"{remote} has no export: there is no {MANIFEST}.\n  Check the address.")
    _check_size(remote, MANIFEST, listing[MANIFEST], None)
    with replacing(destination) as new:
        remote.fetch(MANIFEST, new / MANIFEST, progress)
        manifest = read_manifest(new)
        wanted = [name for name in (*manifest.files, *BESIDE[MANIFEST], CARD) if name in listing]
        for name in wanted:
            _check_size(remote, name, listing[name], manifest.files.get(name))
        for name in wanted:
            if not _reused(destination / name, new / name, listing[name]):
                remote.fetch(name, new / name, progress)
        _check(remote, read_record(new), listing)
    return manifest


def _check_size(remote: Remote, name: str, stored: RemoteFile, record: FileRecord | None) -> None:
    """Raise :class:`specs.base.errors.UserError`, before a file is fetched, where its size is not as recorded, or too large for a
    file without a record."""
    if stored.size != record.size if record else stored.size > LARGEST:
        most = f"{MANIFEST} records {record.size:,}" if record else f"at most {LARGEST:,} are fetched of it"
        raise UserError(
            f"{remote} is damaged: {name} has {stored.size:,} bytes, and {most}.\n  Publish the export again."
        )


def _reused(earlier: Path, target: Path, stored: RemoteFile) -> bool:
    """Link an existing file with the wanted contents; return whether there is one."""
    if stored.sha256 is None or not earlier.is_file() or earlier.is_symlink():
        return False
    if not stored.holds(earlier, file_record(earlier)):
        return False
    link_file(earlier, target)
    return True


def _check(remote: Remote, record: ExportRecord, listing: Mapping[str, RemoteFile]) -> None:
    changes = check_integrity(record, contents=True).changes
    if changes:
        missing = [change.file for change in changes if change.file not in listing]
        what = f"{missing[0]} is missing" if missing else str(changes[0])
        raise UserError(f"{remote} is damaged: {what}.\n  Publish the export again.")
