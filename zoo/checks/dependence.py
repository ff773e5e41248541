"""Whether an output depends on something, in figures."""

from __future__ import annotations

from collections.abc import Callable

from zoo.checks.degenerate import may_fade, why_deaf
from zoo.checks.result import CHANGED, Check, skipped
from zoo.checks.subject import Subject


def depends(
    name: str, subject: Subject, change: Callable[[], float], explanation: str, excuse: str = ""
) -> Check:
    """A check that passes when ``change``, measured on some draw of the weights, is one.

    ``excuse`` says why there need not be one, empty where there must.
    """
    reason = why_deaf(subject.spec)
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
