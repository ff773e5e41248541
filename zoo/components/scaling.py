"""Constant factors."""

from __future__ import annotations

from torch import Tensor


def scaled(x: Tensor, factor: float) -> Tensor:
    """x * factor; ``x`` itself if the factor is 1, so that no graph has an operation for it."""
    return x if factor == 1.0 else x * factor
