"""Differences between two exported directories, from their manifests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from zoo.record.manifest import ExportRecord, Manifest
from zoo.reports.module_pairs import in_order

_OF_EXPORT = ("target", "precision", "layout", "weights", "seed", "providers", "cache")
_OF_GRAPH = ("nodes", "opset", "minimum_runtime", "operations")
_OF_VERIFICATION = ("passed", "subject", "provider", "runtime")


@dataclass(frozen=True)
class FactDifference:
    """A manifest entry by its path, and its value in both exports; None if missing."""

    path: tuple[str, ...]
    a: Any
    b: Any

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {"path": list(self.path), "a": self.a, "b": self.b}


@dataclass(frozen=True)
class WeightDifference:
    """The stored weights that differ between two exports or are in only one, by name."""

    same: int
    differ: tuple[str, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]

    @property
    def alike(self) -> bool:
        """Whether both hold the same weights, byte for byte."""
        return not (self.differ or self.only_a or self.only_b)

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "same": self.same,
            "differ": list(self.differ),
            "only_a": list(self.only_a),
            "only_b": list(self.only_b),
        }


def weight_difference(a: Manifest, b: Manifest) -> WeightDifference:
    """The weights of two exports compared by their digests."""
    ours, theirs = _weights(a), _weights(b)
    both = [name for name in ours if name in theirs]
    differ = tuple(name for name in both if ours[name] != theirs[name])
    return WeightDifference(
        len(both) - len(differ),
        differ,
        tuple(name for name in ours if name not in theirs),
        tuple(name for name in theirs if name not in ours),
    )


def _weights(manifest: Manifest) -> dict[str, frozenset[str]]:
    """The digests of each weight by name; several if data files differ."""
    digests_by_name = dict[str, set[str]]()
    for tensors in manifest.tensors.values():
        for name, tensor in tensors.items():
            digests_by_name.setdefault(name, set()).add(tensor.sha256)
    return {name: frozenset(digests) for name, digests in digests_by_name.items()}


def export_differences(a: ExportRecord, b: ExportRecord) -> list[FactDifference]:
    """The manifest entries that differ: export options, files, verification."""
    ours, theirs = (dict(_facts(record)) for record in (a, b))
    facts = [
        FactDifference(path, ours.get(path), theirs.get(path)) for path in in_order(list(ours), list(theirs))
    ]
    return [*(fact for fact in facts if fact.a != fact.b), *_contents(a.manifest, b.manifest)]


def _contents(a: Manifest, b: Manifest) -> Iterator[FactDifference]:
    """Files of equal size with different contents, except data files, whose weights are compared one by one.

    Graphs carry spec and versions in their metadata, so they differ if spec or versions do; specs are compared as specs.
    """
    metadata = [
        (manifest.files.get("spec.yaml"), manifest.zoo, manifest.torch, manifest.weights, manifest.seed)
        for manifest in (a, b)
    ]
    graphs = a.graphs if metadata[0] != metadata[1] else {}
    for name in sorted((a.files.keys() & b.files.keys()) - {"spec.yaml"} - graphs.keys() - a.tensors.keys()):
        ours, theirs = a.files[name], b.files[name]
        if ours.size == theirs.size and ours.sha256 != theirs.sha256:
            yield FactDifference(("files", name, "sha256"), ours.sha256, theirs.sha256)


def _facts(record: ExportRecord) -> Iterator[tuple[tuple[str, ...], Any]]:
    manifest = record.manifest.model_dump(mode="json")
    for key in _OF_EXPORT:
        yield from _flat((key,), manifest[key])
    for name, file in record.manifest.files.items():
        if name != "spec.yaml":  # specs are compared as specs
            yield ("files", name), file.size
    for name, graph in manifest["graphs"].items():
        for key in _OF_GRAPH:
            yield from _flat(("graphs", name, key), graph[key])
    verification = record.verification
    if verification is None:
        yield ("verification",), record.unproven or "none"
        return
    for key in _OF_VERIFICATION:
        yield ("verification", key), getattr(verification, key)
    yield ("verification", "comparisons"), len(verification.comparisons)
    yield ("verification", "max_abs"), verification.max_abs


def _flat(path: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not isinstance(value, Mapping):
        yield path, value
        return
    for key, inner in value.items():
        yield from _flat((*path, key), inner)
