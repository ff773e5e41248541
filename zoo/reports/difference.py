"""What differs between two models: in their specs, module by module, and in what they cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from specs.variation import assignments
from zoo.reports.module_pairs import ModulePair, pair
from zoo.reports.quantities import Measured, Quantity, Sizes, quantities
from zoo.reports.spec_difference import SpecDifference


@dataclass(frozen=True)
class ModelDifference:
    """All that differs between two sides.

    ``assignments`` are those of ``--set`` that turn the spec of the first into that of the second, None where none do;
    ``faults`` say why FLOPs are missing, if they are.
    """

    found: SpecDifference
    assignments: list[str] | None
    modules: ModulePair
    quantities: tuple[Quantity, ...]
    sizes: Sizes
    faults: tuple[str, ...]

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
            "sizes": asdict(self.sizes),
            "costs": [each.as_dict() for each in self.quantities],
            "faults": list(self.faults),
            **found.exports_dict(),
        }


def compare_models(found: SpecDifference, *, batch: int, length: int | None) -> ModelDifference:
    """The same with the modules of both, built without weights, and what they cost at a batch size and length.

    Without a length it is 1024, or the shortest context.  Raises :class:`specs.errors.UserError` for a longer one.
    """
    sizes = Sizes.of((found.a.spec, found.b.spec), batch, length)
    a, b = Measured.of(found.a.spec), Measured.of(found.b.spec)
    faults = tuple(side.fault for side in (a, b) if side.fault)
    flops = ({}, {}) if faults else (a.flops(sizes), b.flops(sizes))
    return ModelDifference(
        found,
        assignments(found.a.document, found.b.document),
        pair(a.parameters.root, b.parameters.root, flops),
        tuple(quantities(a, b, sizes)),
        sizes,
        faults,
    )
