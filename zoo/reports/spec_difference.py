"""Differences between two models that need no building: specs and exports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specs.forms.canonical import canonical
from specs.forms.canonical import differences as computed_differences
from specs.forms.difference import Difference, differences
from zoo.record.integrity import Integrity, check_integrity
from zoo.reports.exports import FactDifference, WeightDifference, export_differences, weight_difference
from zoo.reports.side import Side


@dataclass(frozen=True)
class SpecDifference:
    """Differences between two sides that need no building.

    ``exports`` and ``weights`` are None unless both are exports; ``integrity``: whether the files of each side match its
    manifest, or None if it is not an export.
    """

    a: Side
    b: Side
    spec: tuple[Difference, ...]
    exports: tuple[FactDifference, ...] | None
    weights: WeightDifference | None
    integrity: tuple[Integrity | None, Integrity | None]

    @property
    def same(self) -> bool:
        """Whether specs, export options and weights are equal, and no file has changed since.

        Measured verification errors are ignored.
        """
        alike = self.weights is None or self.weights.alike
        intact = all(integrity is None or integrity.intact for integrity in self.integrity)
        exported = not any(fact.path != ("verification", "max_abs") for fact in self.exports or ())
        return not self.spec and exported and alike and intact

    @property
    def same_architecture(self) -> bool:
        """Whether both compute the same from the same weights."""
        return not any(computed_differences(canonical(self.a.spec), canonical(self.b.spec)))

    def exports_dict(self) -> dict[str, Any]:
        """The differences between exports, as JSON data."""
        sides = zip("ab", self.integrity, strict=True)
        return {
            "exports": None if self.exports is None else [item.as_dict() for item in self.exports],
            "weights": None if self.weights is None else self.weights.as_dict(),
            "integrity": {side: None if item is None else item.as_dict() for side, item in sides},
        }


def compare_specs(a: Side, b: Side, *, digests: bool | None = None) -> SpecDifference:
    """Differences between the specs of two sides, and between their exports if both are exports.

    ``digests``: whether to compare exported files with their recorded digests (default: if that takes seconds).
    """
    spec = tuple(differences(a.spec, b.spec))
    integrity = _integrity(a, digests), _integrity(b, digests)
    if a.export is None or b.export is None:
        return SpecDifference(a, b, spec, None, None, integrity)
    weights = weight_difference(a.export.manifest, b.export.manifest)
    return SpecDifference(a, b, spec, tuple(export_differences(a.export, b.export)), weights, integrity)


def _integrity(side: Side, digests: bool | None) -> Integrity | None:
    if side.export is None:
        return None
    return check_integrity(side.export, contents=digests)
