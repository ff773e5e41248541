"""Checks of a module before its export: faults that a comparison of the module with its own files cannot show."""

from __future__ import annotations

from typing import Any

from exporters.verification.verified_model import narrowest_model
from specs.base.errors import UserError, option_name
from specs.model.model import Model
from zoo.checks.behaviour import BehaviourReport, run_checks
from zoo.checks.subject import subject_of


class BehaviourError(UserError):
    """A model does not behave as its spec requires; no files were written."""

    def __init__(self, name: str, report: BehaviourReport) -> None:
        self.report = report
        failed = [check for check in report.checks if check.status == "failed"]
        lines = [f"{name} does not behave as its spec says, on {report.subject}:"]
        lines += [f"{check.name}: {check.reason or check.explanation}: {check.measured}" for check in failed]
        lines.append("Correct the module so that its checks pass.")
        lines.append(f"Or pass {option_name('verify', False)} to export the model as it is.")
        super().__init__("\n  ".join(lines))

    @property
    def evidence(self) -> dict[str, Any]:
        """The checks that show it, as JSON data."""
        return {"behaviour": self.report.as_dict()}


def check_module(spec: Model) -> None:
    """Run the behaviour checks on the narrowest reduced model; verification itself compares cached decoding with a full
    pass.

    Raises :class:`BehaviourError`.
    """
    reduced = narrowest_model(spec)
    subject = subject_of(reduced.spec)
    report = BehaviourReport(
        reduced.description, subject.weights.description, tuple(run_checks(subject, cached=False))
    )
    if not report.passed:
        raise BehaviourError(spec.name, report)
