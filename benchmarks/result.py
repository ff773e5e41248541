"""Results of benchmarks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """A figure with its baseline, the ratio of the two, and the bound on the ratio ("at most" or "at least").

    Without a baseline, such as a peer that is not installed, the ratio is None.
    """

    name: str
    figure: str
    baseline: str
    ratio: float | None
    bound: float
    at_most: bool = True

    @property
    def met(self) -> bool:
        """Whether the ratio keeps the bound, as far as there is one."""
        if self.ratio is None:
            return True
        return self.ratio <= self.bound if self.at_most else self.ratio >= self.bound

    @property
    def verdict(self) -> str:
        """The verdict as text."""
        if self.ratio is None:
            return "not compared"
        return "kept" if self.met else "NOT KEPT"


def milliseconds(seconds: float) -> str:
    """A time as text."""
    return f"{1e3 * seconds:.1f} ms"


def speedup(name: str, ours: float, theirs: float, label: str, bound: float = 1) -> Result:
    """The result of timing a call: a baseline must take at least ``bound`` times as long."""
    return Result(
        name, milliseconds(ours), f"{milliseconds(theirs)}, {label}", theirs / ours, bound, at_most=False
    )
