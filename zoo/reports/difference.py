"""What differs between two models: in their specs, module by module, in what they cost, and in what was exported."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from specs.difference import Difference, differences
from specs.variation import assignments
from zoo.reports.exports import FactDifference, export_differences
from zoo.reports.module_pairs import ModulePair, pair
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
        return not self.spec and not any(fact.path != ("verification", "max_abs") for fact in self.exports or ())

    @property
    def same_architecture(self) -> bool:
        """Whether both compute the same from the same weights."""
        return not any(each.computed for each in self.spec)


@dataclass(frozen=True)
class ModelDifference:
    """All that differs between two sides.

    ``assignments`` are those of ``--set`` that turn the spec of the first into that of the second, None where none do.
    """

    found: SpecDifference
    assignments: list[str] | None
    modules: ModulePair
    quantities: tuple[Quantity, ...]

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        found = self.found
        return {
            "same": found.same,
            "same_architecture": found.same_architecture,
            "a": {"name": found.a.spec.name, "parameters": self.modules.parameters[0]},
            "b": {"name": found.b.spec.name, "parameters": self.modules.parameters[1]},
            "spec": [each.as_dict() for each in found.spec],
            "set": self.assignments,
            "modules": [each.as_dict() for each in self.modules.walk() if each.differs_itself],
            "costs": [each.as_dict() for each in self.quantities],
            "exports": None if found.exports is None else [each.as_dict() for each in found.exports],
        }


def compare_specs(a: Side, b: Side) -> SpecDifference:
    """What differs between the specs of two sides, and between their exports where both are."""
    both = a.export is not None and b.export is not None
    exports = tuple(export_differences(a.export or {}, b.export or {})) if both else None
    return SpecDifference(a, b, tuple(differences(a.spec, b.spec)), exports)


def compare_models(found: SpecDifference, *, batch: int, length: int) -> ModelDifference:
    """The same with the modules of both, built without weights, and what they cost at a batch size and length."""
    from zoo.builder import assemble
    from zoo.reports.parameters import parameter_report

    a, b = found.a, found.b
    reports = [parameter_report(assemble(side.spec), side.spec) for side in (a, b)]
    return ModelDifference(
        found,
        assignments(a.document, b.document),
        pair(reports[0].root, reports[1].root),
        (),
    )
