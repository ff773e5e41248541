"""How models are trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WARM_UP = 0.1
"""The share of the steps in which the learning rate rises."""
END = 0.1
"""The share of the learning rate that is left at the end of its cosine."""
CLIP = 1.0
"""The largest norm of all gradients together."""


@dataclass(frozen=True)
class Settings:
    """Steps of so many passages, the highest learning rate, and the seed of weights, passages and dropout."""

    steps: int = 300
    batch: int = 32
    rate: float = 3e-3
    seed: int = 0

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return vars(self)
