"""Measuring whether an output depends on something."""

from __future__ import annotations

from collections.abc import Callable

from zoo.checks.degenerate import may_fade, why_insensitive
from zoo.checks.result import CHANGED, Check, skipped
from zoo.checks.subject import CheckedModel


def depends(
    name: str, subject: CheckedModel, change: Callable[[], float], explanation: str, excuse: str = ""
) -> Check:
    """A check that passes when ``change`` is a change for some draw of the weights.

    ``excuse`` says why the output need not depend on it; empty where it must.
    """
    reason = why_insensitive(subject.spec)
    if reason:
        return skipped(name, explanation, reason)
    for _ in subject.draws():
        figure = change()
        if figure > CHANGED:
            return Check(name, "passed", explanation, figure, f"more than {CHANGED:g}")
    reason = excuse or may_fade(subject.spec)
    if reason:
        return skipped(name, explanation, reason)
    return Check(name, "failed", explanation, figure, f"more than {CHANGED:g}")
