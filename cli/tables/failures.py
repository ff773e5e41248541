"""Failures as the last lines of a command, because figures far above are easily missed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from specs.base.errors import with_flags

if TYPE_CHECKING:
    from specs.base.errors import SpecPath
    from specs.language.document import Document
    from zoo.checks import BehaviourReport, Check, ShapeReport
    from zoo.reports.parameter_check import ParameterCheck
    from zoo.reports.parameters import ParameterReport


def failures_of(
    parameters: ParameterReport | None = None,
    shapes: ShapeReport | None = None,
    behaviour: BehaviourReport | None = None,
    document: Document | None = None,
) -> list[tuple[str, str]]:
    """Every failure of some reports with its remedy; of several with the same remedy, the last has it.

    A count comes with its place in the ``document`` of the spec, if that is given.
    """
    failures = [*_counts(parameters, document), *_shapes(shapes), *_behaviour(behaviour)]
    remedies = [*(remedy for _, remedy in failures[1:]), ""]
    return [
        (failure, remedy if remedy != after else "")
        for (failure, remedy), after in zip(failures, remedies, strict=True)
    ]


def _counts(report: ParameterReport | None, document: Document | None) -> Iterator[tuple[str, str]]:
    for count in report.comparisons if report is not None else ():
        if not count.met:
            yield (
                f"{_place(count, document)}{count.key}: {count}",
                f"If the change is intended, remove {count.key}, or set it to {count.built}.",
            )


def _place(count: ParameterCheck, document: Document | None) -> str:
    """The position of an expected count in its file, such as ``my-gpt.yaml:24:9: ``."""
    if document is None:
        return ""
    path: SpecPath = ("expect", "active_parameters" if count.active else "parameters")
    mark = document.mark_of(("expect", "modules", count.path) if count.path else path)
    return "" if mark is None else f"{with_flags(mark.text)}: "


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
