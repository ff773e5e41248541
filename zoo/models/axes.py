"""Positions along several axes."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Axes:
    """coordinates: A B T, the position of each token along each of A axes, by which it is rotated.  groups: B T, where tokens see
    only those of their own group, or None."""

    coordinates: Tensor
    groups: Tensor | None = None
