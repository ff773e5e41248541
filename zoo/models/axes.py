"""Positions along several axes."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from zoo.functional import GridPlaces


@dataclass(frozen=True)
class Axes:
    """coordinates: A B T, the position of each token along each of A axes, by which it is rotated.  places: those of patches, which
    see only patches of the same image, or None."""

    coordinates: Tensor
    places: GridPlaces | None = None

    def groups(self, window: int | None) -> Tensor | None:
        """The number of the group of tokens that each sees, B T; None for all."""
        return None if self.places is None else self.places.groups(window)
