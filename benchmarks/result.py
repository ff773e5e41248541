"""What a benchmark finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """A figure beside its baseline, the ratio, and the bound that it is held to ("at most" or "at least")."""

    name: str
    figure: str
    baseline: str
    ratio: float
    bound: float
    at_most: bool = True

    @property
    def met(self) -> bool:
        """Whether the ratio keeps the bound."""
        return self.ratio <= self.bound if self.at_most else self.ratio >= self.bound
