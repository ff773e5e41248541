"""The default screen of ``zoo check``: shapes and behaviour in a row each."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from cli.tables.model_rows import shape_row
from cli.terminal.screen import Screen, bad, doubtful, good

if TYPE_CHECKING:
    from zoo.checks import BehaviourReport, ModuleShapes, ShapeReport


def print_shapes_row(screen: Screen, report: ShapeReport) -> None:
    """Print how many modules agree, and what the whole model takes and gives."""
    shape_row(screen, report, *(_signature(module) for module in report.modules if not module.path))


def _signature(model: ModuleShapes) -> str:
    """The inputs and outputs of a method of the model, without its caches."""
    takes, gives = (
        ", ".join(text for text in side if "(" not in text) for side in (model.inputs, model.outputs)
    )
    return f"{takes} -> {gives}"


def print_behaviour_row(screen: Screen, report: BehaviourReport) -> None:
    """Print how many checks passed, their names, and what they ran on."""
    counts = Counter(check.status for check in report.checks)
    total = f"{counts['passed']} of {len(report.checks)} passed"
    screen.row("checks", (good if report.passed else bad)(total), _names(report, "passed"))
    if skipped := _names(report, "skipped"):
        screen.row("skipped", doubtful(skipped))
    screen.row("ran on", f"{report.subject}, weights {report.weights}")


def _names(report: BehaviourReport, status: str) -> str:
    """The checks of a status, each named once for all stacks."""
    names = (check.name.rpartition(": ")[2] for check in report.checks if check.status == status)
    return ", ".join(dict.fromkeys(name.replace(",", "") for name in names))
