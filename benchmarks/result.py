"""What a benchmark finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """A figure beside its baseline, the ratio, and the bound that it is held to ("at most" or "at least").

    There is no ratio where there is no baseline to compare with, such as a peer that is not installed.
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
        """Whether the bound was kept, in words."""
        if self.ratio is None:
            return "not compared"
        return "kept" if self.met else "NOT KEPT"
