"""Differences between two models: specs, modules and costs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from specs.base.errors import path_text
from specs.forms.variation import assignments
from zoo.core.result_table import ResultTable, Tabular
from zoo.reports.module_pairs import ModulePair, pair
from zoo.reports.quantities import ComparedSizes, Measured, Quantity, quantities
from zoo.reports.spec_difference import SpecDifference


@dataclass(frozen=True)
class ModelDifference(Tabular):
    """All differences between two sides.

    ``assignments`` turn the first spec into the second, or are None if no assignments can; ``faults`` explain missing FLOPs.
    """

    found: SpecDifference
    assignments: list[str] | None
    modules: ModulePair
    quantities: tuple[Quantity, ...]
    sizes: ComparedSizes
    faults: tuple[str, ...]

    def table(self) -> ResultTable:
        """The differences between the specs, then those in cost."""
        specs = [
            (path_text(each.path), *("" if value is None else str(value) for value in (each.a, each.b)))
            for each in self.found.spec
        ]
        costs = [
            (f"{each.name} ({each.unit})" if each.unit != each.name else each.name,
             *("" if value is None else f"{value:,}" for value in (each.a, each.b)))
            for each in self.quantities
            if each.a != each.b
        ]  # fmt: skip
        a, b = self.found.a.label, self.found.b.label
        return ResultTable(
            f"{a} and {b}: {len(specs)} {'difference' if len(specs) == 1 else 'differences'}",
            ("", a, b),
            [*specs, *costs],
        )

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
    """Add the modules of both, built without weights, and their costs at a batch size and length.

    The default length is 1024, or the shortest context.  Raises :class:`specs.base.errors.UserError` for a longer one.
    """
    sizes = ComparedSizes.of((found.a.spec, found.b.spec), batch, length)
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
