"""What can be said of a model before it is exported: the shapes of all modules, and how it behaves."""

from zoo.checks.behaviour import BehaviourReport, check_behaviour
from zoo.checks.result import Check
from zoo.checks.shapes import ModuleShapes, ShapeReport, check_shapes

__all__ = ["BehaviourReport", "Check", "ModuleShapes", "ShapeReport", "check_behaviour", "check_shapes"]
