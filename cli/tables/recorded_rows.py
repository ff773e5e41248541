"""Rows about what an export recorded of its verification and its quality."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.terminal.screen import Line, Screen, bad, doubtful, good

if TYPE_CHECKING:
    from zoo.record.manifest import ExportRecord
    from zoo.record.records import VerificationRecord

_FIGURES = 2
"""Number of figures of quality printed: the page and the record have all."""


def recorded_rows(screen: Screen, export: ExportRecord) -> None:
    """Print the recorded verdict, the largest difference, the cases and the engines, and the figure of quality."""
    if screen.tables:
        from cli.terminal.render import say

        say()
    verification = export.verification
    if verification is None:
        why = f": {export.unproven}" if export.unproven else ""
        screen.fact("verify", doubtful(f"this export was not verified{why}"))
    elif verification.comparisons:
        _verification_row(screen, verification)
    quality = None if export.build is None else export.build.quality
    if quality is not None:
        from exporters.quality.quality import MEASURES

        measures = [(MEASURES[name], value) for name, value in [*quality.figures.items()][:_FIGURES]]
        figures = ", ".join(f"{measure.label} {value:{measure.form}}" for measure, value in measures)
        screen.fact("quality", figures if quality.passed else bad(figures), f"on {quality.inputs}")


def _verification_row(screen: Screen, verification: VerificationRecord) -> None:
    from exporters.verification.result import THE_FILES

    comparisons = verification.comparisons
    largest = max(comparisons, key=lambda comparison: _difference(comparison.max_abs))
    verdict = good("passed") if verification.passed else bad("failed")
    cases = len({comparison.case for comparison in comparisons})
    provider = verification.provider.removesuffix("ExecutionProvider")
    difference = f"largest difference {_difference(largest.max_abs):.1e} ({largest.tolerance:.1e} allowed)"
    lines: list[Line] = [
        (verdict, f", {difference}"),
        f"PyTorch against {verification.runtime} on {provider}, {cases} cases, at export",
    ]
    if verification.ran != THE_FILES:
        lines.append(doubtful(f"run: {verification.ran}"))
    if not_run := (verification.model_extra or {}).get("not_run"):
        lines.append(doubtful(f"not tested on {not_run.removesuffix('ExecutionProvider')}"))
    lines += [(bad if engine.outcome == "failed" else good)(engine.text) for engine in verification.engines]
    screen.fact("verify", *lines)


def _difference(recorded: float | None) -> float:
    """A recorded difference, where null is infinity."""
    return float("inf") if recorded is None else recorded
