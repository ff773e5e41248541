"""Differences between two models: specs, modules and costs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from specs.base.errors import path_text
from specs.base.result_table import ResultTable
from specs.base.tabular import Tabular
from specs.forms.variation import assignments
from zoo.reports.module_pairs import ModulePair, pair
from zoo.reports.quantities import ComparedSizes, Measured, Quantity, quantities
from zoo.reports.spec_difference import SpecDifference


@dataclass(frozen=True)
class ModelDifference(Tabular):
    """All differences between two sides.

    ``assignments`` turn the first spec into the second; None if no assignments can. ``faults`` explain missing FLOPs.
    """

    specs: SpecDifference
    assignments: list[str] | None
    modules: ModulePair
    quantities: tuple[Quantity, ...]
    sizes: ComparedSizes
    faults: tuple[str, ...]

    def table(self) -> ResultTable:
        """The differences between the specs, followed by the differences in cost."""
        specs = [
            (
                path_text(changed.path),
                *("" if value is None else str(value) for value in (changed.a, changed.b)),
            )
            for changed in self.specs.spec
        ]
        costs = [
            (f"{cost.name} ({cost.unit})" if cost.unit != cost.name else cost.name,
             *("" if value is None else f"{value:,}" for value in (cost.a, cost.b)))
            for cost in self.quantities
            if cost.a != cost.b
        ]  # fmt: skip
        a, b = self.specs.a.label, self.specs.b.label
        return ResultTable(
            f"{a} and {b}: {len(specs)} {'difference' if len(specs) == 1 else 'differences'}",
            ("", a, b),
            [*specs, *costs],
        )

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        specs = self.specs
        return {
            "same": specs.same,
            "same_architecture": specs.same_architecture,
            "a": {"name": specs.a.spec.name, "parameters": self.modules.parameters[0]},
            "b": {"name": specs.b.spec.name, "parameters": self.modules.parameters[1]},
            "spec": [changed.as_dict() for changed in specs.spec],
            "set": self.assignments,
            "modules": [pair.as_dict() for pair in self.modules.walk() if pair.differs_itself],
            "sizes": asdict(self.sizes),
            "costs": [cost.as_dict() for cost in self.quantities],
            "faults": list(self.faults),
            **specs.exports_dict(),
        }


def compare_models(specs: SpecDifference, *, batch: int, length: int | None) -> ModelDifference:
    """Add the modules of both, built without weights, and their costs at a batch size and length.

    The default length is 1024, or the shortest context.  Raises :class:`specs.base.errors.UserError` for a longer one.
    """
    sizes = ComparedSizes.of((specs.a.spec, specs.b.spec), batch, length)
    a, b = Measured.of(specs.a.spec), Measured.of(specs.b.spec)
    faults = tuple(side.fault for side in (a, b) if side.fault)
    flops = ({}, {}) if faults else (a.flops(sizes), b.flops(sizes))
    return ModelDifference(
        specs,
        assignments(specs.a.document, specs.b.document),
        pair(a.parameters.root, b.parameters.root, flops),
        tuple(quantities(a, b, sizes)),
        sizes,
        faults,
    )
