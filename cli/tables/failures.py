"""Failures as the last lines of a command, because figures far above are easily missed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cli.terminal.render import say
from cli.terminal.screen import print_failed

if TYPE_CHECKING:
    from zoo.checks import BehaviourReport, Check, ShapeReport
    from zoo.reports.parameters import ParameterReport


def failures_of(
    parameters: ParameterReport | None = None,
    shapes: ShapeReport | None = None,
    behaviour: BehaviourReport | None = None,
) -> list[tuple[str, str]]:
    """Every failure of some reports with its remedy; of several with the same remedy, the last has it."""
    failures = [*_counts(parameters), *_shapes(shapes), *_behaviour(behaviour)]
    remedies = [*(remedy for _, remedy in failures[1:]), ""]
    return [
        (failure, remedy if remedy != after else "")
        for (failure, remedy), after in zip(failures, remedies, strict=True)
    ]


def print_failures(
    parameters: ParameterReport | None = None,
    shapes: ShapeReport | None = None,
    behaviour: BehaviourReport | None = None,
    *,
    outcome: str = "",
) -> None:
    """Print every failure of some reports to stderr, each with its remedy, after the ``outcome`` of the command."""
    failures = [*_counts(parameters), *_shapes(shapes), *_behaviour(behaviour)]
    if failures:
        say(err=True)
        print_failed(f"{outcome}{len(failures)} failed:", failures)


def _counts(report: ParameterReport | None) -> Iterator[tuple[str, str]]:
    for count in report.comparisons if report is not None else ():
        if not count.met:
            yield (
                f"{count.key}: {count}",
                f"If the change is intended, remove {count.key.partition('[')[0]}, or set it to {count.built}.",
            )


def _shapes(report: ShapeReport | None) -> Iterator[tuple[str, str]]:
    for problem in report.problems if report is not None else ():
        yield f"shapes: {problem}", "Correct the forward of this module, or the spec."


def _behaviour(report: BehaviourReport | None) -> Iterator[tuple[str, str]]:
    for check in report.checks if report is not None else ():
        if check.status == "failed":
            yield (
                f"{check.name}: {_found(check)}",
                "Correct the module, or the weights, that the check ran on.",
            )


def _found(check: Check) -> str:
    """The measured and expected values of a check, and its method."""
    figure = "" if check.figure is None else f"{check.figure:.2g}, expected {check.expected}; "
    return figure + "; ".join(filter(None, (check.reason, check.explanation)))
