"""What differs between two models before they are built: in their specs, and in what was exported of them."""

from __future__ import annotations

from dataclasses import dataclass

from specs.canonical import canonical
from specs.canonical import differences as computed_differences
from specs.difference import Difference, differences
from zoo.reports.exports import FactDifference, export_differences
from zoo.reports.side import Side


@dataclass(frozen=True)
class SpecDifference:
    """What differs between two sides without building them; ``exports`` is None where not both are exported."""

    a: Side
    b: Side
    spec: tuple[Difference, ...]
    exports: tuple[FactDifference, ...] | None

    @property
    def same(self) -> bool:
        """Whether the specs say the same, and both were exported alike; how far verifications measured is no matter."""
        return not self.spec and not any(
            fact.path != ("verification", "max_abs") for fact in self.exports or ()
        )

    @property
    def same_architecture(self) -> bool:
        """Whether both compute the same from the same weights."""
        return not any(computed_differences(canonical(self.a.spec), canonical(self.b.spec)))


def compare_specs(a: Side, b: Side) -> SpecDifference:
    """What differs between the specs of two sides, and between their exports where both are."""
    both = a.export is not None and b.export is not None
    exports = tuple(export_differences(a.export or {}, b.export or {})) if both else None
    return SpecDifference(a, b, tuple(differences(a.spec, b.spec)), exports)
