"""Checks of a model before it is exported: the shapes of all modules, and its behaviour."""

from dataclasses import dataclass

from zoo.checks.behaviour import BehaviourReport, check_behaviour
from zoo.checks.result import Check
from zoo.checks.shapes import ModuleShapes, ShapeReport, check_shapes
from zoo.core.result_table import ResultTable, Tabular

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
    """The shapes of all modules, and the behaviour of the model, None where the shapes are wrong."""

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
        verdict = "passed" if self.passed else "failed"
        return ResultTable(f"Checks: {verdict}", ("check", "status", "figure", "expected"), [shapes, *rows])
