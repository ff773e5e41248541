"""Publishing an export: the changes at a remote, and carrying them out."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exporters.remotes.artefact import Artefact
from exporters.remotes.remote import FileChange, Remote, RemoteFile
from specs.base.errors import UserError, option_name
from zoo.core.progress import Progress
from zoo.files.card import CARD
from zoo.files.destination import MANIFEST
from zoo.files.json_values import read_object
from zoo.files.ownership import BESIDE
from zoo.files.reading import LARGEST

_LISTED = 5
_TELLING = ("zoo", "target", "precision", "layout", "weights", "seed")
"""Fields of export.json that distinguish two exports at a glance."""


@dataclass(frozen=True)
class PushPlan:
    """The change to each file when an artefact is published at a remote, and the differences from the export there."""

    artefact: Artefact
    remote: Remote
    changes: tuple[FileChange, ...]
    differences: tuple[str, ...]

    @property
    def current(self) -> bool:
        """Return whether everything is already published."""
        return all(change.state == "same" for change in self.changes)

    @property
    def bytes_to_send(self) -> int:
        """Return the number of bytes that the remote does not have yet."""
        return sum(change.size for change in self.changes if change.sent)

    @property
    def overwritten(self) -> tuple[FileChange, ...]:
        """Return the published files that would be replaced or removed."""
        return tuple(change for change in self.changes if change.state in ("changed", "removed"))

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "export": self.artefact.digest,
            "to": str(self.remote),
            "bytes_to_send": self.bytes_to_send,
            "differences": list(self.differences),
            "files": [
                {"name": change.name, "size": change.size, "state": change.state, "sent": change.sent}
                for change in self.changes
            ],
            "left_out": list(self.artefact.others),
        }


class OverwriteError(UserError):
    """Publishing would replace or remove files at the remote."""

    def __init__(self, plan: PushPlan) -> None:
        files = [f"{change.name} ({change.state})" for change in plan.overwritten]
        more = f" and {len(files) - _LISTED} more" if len(files) > _LISTED else ""
        lines = [
            f"{plan.remote} holds other files, which would be overwritten: {', '.join(files[:_LISTED])}{more}."
        ]
        lines += [f"  {difference}" for difference in plan.differences]
        lines.append(f"  Choose another place, or pass {option_name('force')}.")
        super().__init__("\n".join(lines))


def plan_push(artefact: Artefact, remote: Remote) -> PushPlan:
    """Compare an artefact with the files at a remote. Raises :class:`specs.base.errors.UserError`."""
    listing = remote.listing()
    earlier = _earlier(artefact, remote, listing)
    changes = tuple(sorted(_changes(artefact, remote, listing, earlier), key=lambda change: change.name))
    return PushPlan(artefact, remote, changes, tuple(_differences(artefact, earlier)))


def push(plan: PushPlan, *, force: bool = False, progress: Progress = lambda stage: None) -> str:
    """Carry out a plan; return the address of the published export.

    Raises :class:`OverwriteError` where published files would be replaced or removed, unless ``force``.
    """
    if plan.overwritten and not force:
        raise OverwriteError(plan)
    return plan.remote.send(plan.artefact, plan.changes, progress)


def _earlier(artefact: Artefact, remote: Remote, listing: Mapping[str, RemoteFile]) -> Mapping[str, Any]:
    """Return the export.json at a remote, if it belongs to another export; otherwise empty."""
    stored = listing.get(MANIFEST)
    if stored is None or stored.holds(artefact.directory / MANIFEST, artefact.files[MANIFEST]):
        return {}
    if stored.size > LARGEST:
        raise UserError(
            f"{remote}: {MANIFEST} has {stored.size:,} bytes, and zoo reads at most {LARGEST:,}.\n  Choose another place."
        )
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, MANIFEST)
        remote.fetch(MANIFEST, path, lambda stage: None)
        try:
            return read_object(path, UserError)
        except UserError:
            return {}


def _changes(
    artefact: Artefact, remote: Remote, listing: Mapping[str, RemoteFile], earlier: Mapping[str, Any]
) -> Iterator[FileChange]:
    sent: set[str] = set()  # a file may have two names
    for name, record in artefact.files.items():
        stored = listing.get(name)
        if stored is not None and stored.holds(artefact.directory / name, record):
            yield FileChange(name, record.size, "same", False)
            continue
        if name == CARD and stored is not None and not earlier:
            continue  # files of others stay
        to_send = record.sha256 not in sent and not remote.has_content(record)
        sent.add(record.sha256)
        yield FileChange(name, record.size, "new" if stored is None else "changed", to_send)
    files = earlier.get("files")
    owned = {*(files if isinstance(files, dict) else ()), *BESIDE[MANIFEST], CARD} if earlier else set()
    for name, stored in listing.items():
        if name not in artefact.files and (remote.exclusive or name in owned):
            yield FileChange(name, stored.size, "removed", False)


def _differences(artefact: Artefact, earlier: Mapping[str, Any]) -> Iterator[str]:
    """Return the fields in which another export differs, such as ``target: cpu -> cuda``."""
    if not earlier:
        return
    now = artefact.record.manifest.model_dump(mode="json")
    for field in _TELLING:
        if earlier.get(field) != now[field]:
            yield f"{field}: {earlier.get(field)} -> {now[field]}"
