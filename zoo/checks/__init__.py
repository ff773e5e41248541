"""Checks of a model before it is exported: the shapes of all modules, and its behaviour."""

from dataclasses import dataclass

from specs.base.result_table import ResultTable
from specs.base.tabular import Tabular
from zoo.checks.behaviour import BehaviourReport, check_behaviour
from zoo.checks.result import Check
from zoo.checks.shapes import ModuleShapes, ShapeReport, check_shapes

__all__ = [
    "BehaviourReport",
    "Check",
    "Checks",
    "ModuleShapes",
    "ShapeReport",
    "check_behaviour",
    "check_shapes",
]


@dataclass(frozen=True)
class Checks(Tabular):
    """The shapes of a model's modules, and its behaviour, None where the shapes are wrong."""

    name: str
    shapes: ShapeReport
    behaviour: BehaviourReport | None

    @property
    def passed(self) -> bool:
        return self.behaviour is not None and self.behaviour.passed

    def table(self) -> ResultTable:
        """Every check with its status and figure."""
        shapes = ("shapes", "passed" if self.shapes.passed else "failed", "", "")
        checks = self.behaviour.checks if self.behaviour else ()
        figures = ["" if check.figure is None else f"{check.figure:.2g}" for check in checks]
        rows = [
            (check.name, check.status, figure, check.expected)
            for check, figure in zip(checks, figures, strict=True)
        ]
        table = [shapes, *rows]
        failed = [name for name, status, *_ in table if status == "failed"]
        passed = sum(status == "passed" for _, status, *_ in table)
        verdict = f"failed {', '.join(failed)}" if failed else f"passed {passed} checks"
        return ResultTable(f"{self.name}: {verdict}", ("check", "status", "figure", "expected"), table)
