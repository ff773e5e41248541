"""The result of a behaviour check."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["passed", "failed", "skipped", "info"]

EQUAL = 1e-6
"""The largest difference of equal outputs, relative to the largest value: parts of a model may compute in float32."""

CHANGED = 1e-9
"""The smallest relative difference that counts as a change."""


@dataclass(frozen=True)
class Check:
    """One check: its explanation, the measured figure, and the expected one.

    ``info`` marks a figure without an expectation. ``reason`` says why a check was skipped or failed, where the
    figure does not.
    """

    name: str
    status: Status
    explanation: str
    figure: float | None = None
    expected: str = ""
    reason: str = ""

    @property
    def measured(self) -> str:
        """The figure and the expected one."""
        return self.expected if self.figure is None else f"{self.figure:.2g}; expected {self.expected}"

    def as_dict(self) -> dict[str, Any]:
        """As JSON data; figures that are not finite are given as text."""
        figure = self.figure if self.figure is None or math.isfinite(self.figure) else str(self.figure)
        return {**vars(self), "figure": figure}


def equal(name: str, difference: float, explanation: str) -> Check:
    """A check that passes when two outputs are equal."""
    status: Status = "passed" if difference <= EQUAL else "failed"
    return Check(name, status, explanation, difference, f"at most {EQUAL:g}")


def skipped(name: str, explanation: str, reason: str) -> Check:
    """A check that does not apply, with the reason."""
    return Check(name, "skipped", explanation, reason=reason)
