"""What can be said of a model before it is exported: the shapes of all modules, and how it behaves."""

from dataclasses import dataclass

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
class Checks:
    """The shapes of all modules, and how a model behaves, None where the shapes are wrong."""

    shapes: ShapeReport
    behaviour: BehaviourReport | None

    @property
    def passed(self) -> bool:
        return self.behaviour is not None and self.behaviour.passed
