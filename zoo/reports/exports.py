"""What differs between two exported directories, by what each recorded of itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from zoo.reports.module_pairs import in_order

_OF_EXPORT = ("target", "precision", "layout", "weights", "providers", "cache")
_OF_GRAPH = ("nodes", "opset", "minimum_runtime", "operations")
_OF_VERIFICATION = ("passed", "subject", "provider", "runtime")


@dataclass(frozen=True)
class FactDifference:
    """A fact by its path in the manifest, and what both exports say; None where one says nothing."""

    path: tuple[str, ...]
    a: Any
    b: Any

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {"path": list(self.path), "a": self.a, "b": self.b}


def export_differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[FactDifference]:
    """The facts of two manifests that differ: how they were exported, the size of each file in bytes, and verification."""
    ours, theirs = (dict(_facts(manifest)) for manifest in (a, b))
    paths = in_order(list(ours), list(theirs))
    found = [FactDifference(path, ours.get(path), theirs.get(path)) for path in paths]
    return [each for each in found if each.a != each.b]


def _facts(manifest: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key in _OF_EXPORT:
        yield from _flat((key,), manifest.get(key))
    for name, size in manifest["files"].items():
        if name != "spec.yaml":  # which is compared as a spec
            yield ("files", name), size
    for name, graph in manifest["graphs"].items():
        for key in _OF_GRAPH:
            yield from _flat(("graphs", name, key), graph.get(key))
    verification = manifest.get("verification")
    if verification is None:
        yield ("verification",), "none"
        return
    for key in _OF_VERIFICATION:
        yield ("verification", key), verification.get(key)
    yield ("verification", "comparisons"), len(verification["comparisons"])
    yield ("verification", "max_abs"), max(each["max_abs"] or 0.0 for each in verification["comparisons"])


def _flat(path: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not isinstance(value, Mapping):
        yield path, value
        return
    for key, inner in value.items():
        yield from _flat((*path, key), inner)
