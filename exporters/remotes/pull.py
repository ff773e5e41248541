"""Fetching a published export and checking its digests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from exporters.remotes.remote import Remote, RemoteFile
from specs.errors import UserError
from zoo.destination import MANIFEST, replacing
from zoo.files.card import CARD
from zoo.files.linking import link_file
from zoo.files.ownership import BESIDE
from zoo.integrity import check_integrity, file_record
from zoo.manifest import Manifest, read_manifest
from zoo.progress import Progress


def pull(remote: Remote, destination: Path, progress: Progress = lambda stage: None) -> Manifest:
    """Write a published export to a directory, which appears complete or not at all; return its manifest.

    Only the records and the files that export.json lists are fetched, except files that an earlier export at the
    destination already has. Raises :class:`specs.errors.UserError` where there is no export, or a file does not match its
    record.
    """
    listing = remote.listing()
    if MANIFEST not in listing:
        raise UserError(f"{remote} has no export: there is no {MANIFEST}.\n  Check the address.")
    with replacing(destination) as new:
        remote.fetch(MANIFEST, new / MANIFEST, progress)
        manifest = read_manifest(new)
        for name in (*manifest.files, *BESIDE[MANIFEST], CARD):
            if name in listing and not _reused(destination / name, new / name, listing[name]):
                remote.fetch(name, new / name, progress)
        _check(remote, new, manifest, listing)
    return manifest


def _reused(earlier: Path, target: Path, stored: RemoteFile) -> bool:
    """Link an existing file with the wanted contents; return whether there is one."""
    if stored.sha256 is None or not earlier.is_file() or earlier.is_symlink():
        return False
    if not stored.holds(earlier, file_record(earlier)):
        return False
    link_file(earlier, target)
    return True


def _check(remote: Remote, new: Path, manifest: Manifest, listing: Mapping[str, RemoteFile]) -> None:
    changes = check_integrity(new, manifest, contents=True).changes
    if changes:
        missing = [change.file for change in changes if change.file not in listing]
        what = f"{missing[0]} is missing" if missing else str(changes[0])
        raise UserError(f"{remote} is damaged: {what}.\n  Publish the export again.")
