"""What a behaviour check found."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["passed", "failed", "skipped", "info"]

EQUAL = 1e-6
"""The largest difference of equal outputs, relative to the largest value: parts of a model may work in float32."""

CHANGED = 1e-9
"""The smallest such difference that is a change."""


@dataclass(frozen=True)
class Check:
    """One check: what was done, the figure that came out, and the one that was expected.

    ``info`` is a figure that nothing is expected of.  ``reason`` says why a check was skipped or failed, where
    the figure does not.
    """

    name: str
    status: Status
    explanation: str
    figure: float | None = None
    expected: str = ""
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As JSON data; a figure that is no finite number is given as text."""
        figure = self.figure if self.figure is None or math.isfinite(self.figure) else str(self.figure)
        return {**vars(self), "figure": figure}


def equal(name: str, difference: float, explanation: str) -> Check:
    """A check that passes when two outputs are equal."""
    status: Status = "passed" if difference <= EQUAL else "failed"
    return Check(name, status, explanation, difference, f"at most {EQUAL:g}")


def skipped(name: str, explanation: str, reason: str) -> Check:
    """A check that does not apply, and why."""
    return Check(name, "skipped", explanation, reason=reason)
