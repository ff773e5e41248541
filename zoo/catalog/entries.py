"""The exports that a catalog lists, read from their directories."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specs.forms.resolved import resolved
from specs.language.load import load
from specs.model.model import Model
from zoo.files.ownership import MANIFEST
from zoo.record.integrity import Integrity, check_integrity, sha256_of
from zoo.record.manifest import ExportRecord, Manifest, read_record
from zoo.record.usage import Usage


@dataclass(frozen=True)
class CatalogEntry:
    """One export by its ``name`` in the catalog, and the program of its client."""

    name: str
    record: ExportRecord
    spec: Model
    integrity: Integrity
    client: str
    usage: Usage

    @property
    def manifest(self) -> Manifest:
        """Return the export's manifest."""
        return self.record.manifest

    @property
    def size(self) -> int:
        """Return the total size of all files in bytes."""
        return sum(file.size for file in self.manifest.files.values())

    @property
    def state(self) -> str:
        """Return the state of the files: ``verified``, ``failed``, ``unverified``, or ``changed`` since the export."""
        if not self.integrity.intact:
            return "changed"
        verification = self.record.verification
        return "unverified" if verification is None else "verified" if verification.passed else "failed"

    @property
    def state_text(self) -> str:
        """Return the state, and of verified files where: the runtime and the engines."""
        verification = self.record.verification
        if verification is None or self.state != "verified":
            return self.state
        return f"verified in {', '.join([verification.runtime, *(engine.name for engine in verification.engines)])}"

    def inputs(self) -> dict[str, Any]:
        """Return the inputs of the export as JSON data, which later catalogs compare."""
        manifest, build = self.manifest, self.record.build
        made_from: Mapping[str, Any] = (build.made_from if build else None) or {}
        versions = {"zoo": manifest.zoo, "torch": manifest.torch, "onnx": manifest.onnx}
        options = {"target": manifest.target, "precision": manifest.precision, "layout": manifest.layout}
        kind = manifest.weights if manifest.seed is None else f"random, seed {manifest.seed}"
        return {
            "export": sha256_of(self.record.directory / MANIFEST, self.record.directory),
            "state": self.state,
            "weights": made_from.get("weights", kind),
            "weights_digest": _weights_digest(manifest),
            "calibrate": made_from.get("calibrate"),
            "options": {**options, **manifest.options.model_dump(mode="json")},
            "versions": {**made_from.get("versions", {}), **versions},
        }


def _weights_digest(manifest: Manifest) -> str:
    """The SHA-256 of the digests of all weights, as stored."""
    lines = sorted(
        f"{name} {tensor.sha256}" for file in manifest.tensors.values() for name, tensor in file.items()
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@dataclass(frozen=True)
class UnlistedExport:
    """An export that is missing or damaged, and the reason."""

    name: str
    why: str


def exports_below(directory: Path) -> dict[str, Path]:
    """Return the exports in a directory and below it by path; links and hidden directories are not followed."""
    exports = {}
    for parent, directories, files in os.walk(directory):
        if MANIFEST in files:
            path = Path(parent)
            name = path.relative_to(directory).as_posix()
            exports[path.resolve().name if name == "." else name] = path
        directories[:] = sorted(name for name in directories if not name.startswith("."))
    return exports


Client = Callable[[Model, Manifest], tuple[str, Usage]]
"""Gives what the client of an export is called, and its program."""


def read_entry(name: str, directory: Path, client: Client, *, contents: bool) -> CatalogEntry:
    """Return the entry of an exported directory. With ``contents``, its files are compared with their digests.

    Raises :class:`specs.base.errors.UserError` for a damaged record.
    """
    record = read_record(directory)
    spec = load(directory / "spec.yaml")
    integrity = check_integrity(record, contents=contents)
    return CatalogEntry(name, record, spec, integrity, *client(spec, record.manifest))


def distinct_models(entries: Sequence[CatalogEntry]) -> tuple[list[Model], list[int]]:
    """Return the distinct models of some entries, and the index of each entry's model."""
    models: dict[str, Model] = {}
    keys = [json.dumps(resolved(entry.spec)) for entry in entries]
    for key, entry in zip(keys, entries, strict=True):
        models.setdefault(key, entry.spec)
    known = {key: index for index, key in enumerate(models)}
    return [*models.values()], [known[key] for key in keys]
