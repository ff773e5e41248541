"""Training settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WARM_UP = 0.1
"""The fraction of steps with learning-rate warm-up."""
END = 0.1
"""The final fraction of the peak learning rate."""
CLIP = 1.0
"""The global gradient norm to clip to."""


@dataclass(frozen=True)
class Settings:
    """Number of steps, passages per step, peak learning rate, and the seed of weights, passages and dropout."""

    steps: int = 300
    batch: int = 32
    rate: float = 3e-3
    seed: int = 0

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return vars(self)
