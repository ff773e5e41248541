"""The weights of a mixture that a decoder step reads: larger batches select more of the experts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

BATCHES = (1, 8, 64)
"""The batch sizes of a report."""


def expected_experts(selected: int, total: int, tokens: int) -> float:
    """The expected number of different experts that ``tokens`` select, each ``selected`` of ``total`` at random."""
    return total * (1 - (1 - selected / total) ** tokens)


@dataclass(frozen=True)
class ExpertRead:
    """The weights that one decoder step of ``batch`` sequences reads, in bytes.

    ``experts``: for each kind of mixture the expected number of different experts per layer, and their total.
    """

    batch: int
    experts: tuple[tuple[float, int], ...]
    bytes: int

    @property
    def experts_text(self) -> str:
        """The experts as text: ``7.2 of 8``."""
        return ", ".join(f"{expected:.1f} of {total:,}" for expected, total in self.experts)

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        experts = [{"expected": expected, "total": total} for expected, total in self.experts]
        return {"batch": self.batch, "experts": experts, "weights": self.bytes}
