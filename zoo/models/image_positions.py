"""Positions of tokens among images, and of the patches of images.

Shapes: batch B, query length T, axes A.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from zoo import functional
from zoo.components.mixer import BiasKey
from zoo.functional import GridPlaces
from zoo.models.token_positions import TokenPositions


@dataclass(frozen=True)
class ImagePositions(TokenPositions):
    """Positions of tokens, some of which see others after them, or that rotate along several axes.

    last: B T, the position of the last token that each sees; None if none sees a token after it.
    unlimited: B T, the tokens that windows do not limit, or None.
    both_sides: whether windows reach as far after a token as before it, up to ``last``.
    coordinates: A B T, frame, row and column of each token, or row and column of each patch; None where all equal the position.
    """

    last: Tensor | None = None
    unlimited: Tensor | None = None
    both_sides: bool = False
    coordinates: Tensor | None = None

    @property
    def rotated(self) -> Tensor:
        return self.positions if self.coordinates is None else self.coordinates

    def limits(self, key: BiasKey) -> dict[str, Tensor]:
        if self.last is None:
            return {}
        last = self.last
        if self.both_sides and key.window is not None:
            last = torch.minimum(last, self.positions + (key.window - 1))
        return {"last": last, "unlimited": self.unlimited}  # type: ignore[dict-item]

    def with_lookahead(self, ahead: Tensor | None) -> ImagePositions:
        """The same where each token sees as many after it: B T; None for none."""
        return self if ahead is None else replace(self, last=self.positions + ahead)

    def along(self, coordinates: Tensor | None) -> ImagePositions:
        """The same with a frame, row and column of each token, 3 B T; None where all equal the position."""
        return self if coordinates is None else replace(self, coordinates=coordinates)

    def with_prompt(self, length: Tensor, *, both_sides: bool) -> ImagePositions:
        """The same where the tokens of a prompt see each other, within windows on both sides or whatever the windows.

        length: the number of its tokens, (B or 1) 1.
        """
        inside = self.positions < length
        last = torch.where(inside, length - 1, self.positions)
        return replace(self, last=last, unlimited=None if both_sides else inside, both_sides=both_sides)

    def first_call(self, past: int) -> Tensor:
        """The number of tokens of a first call, after no ``past`` or from slot 0 on, else 0: (B or 1) 1."""
        before = (
            functional.positions_from(past, 1, self.positions) if self.start is None else self.start
        )  # B or 1
        count = self.positions.amax(1, keepdim=True) + 1  # (B or 1) 1
        return count * (before == 0).to(torch.int64)[:, None]


@dataclass(frozen=True)
class PatchPositions(TokenPositions):
    """The patches of images of any size, side by side; each sees its own image, or its window of it.

    coordinates: 4 1 T, row, column and more, by which they rotate.
    """

    places: GridPlaces = field(kw_only=True)
    coordinates: Tensor = field(kw_only=True)

    @classmethod
    def of(cls, x: Tensor, places: GridPlaces) -> PatchPositions:
        """Of patches x, 1 T D, at places."""
        positions = functional.positions_from(0, x.shape[1], x)[None]
        return cls(positions, places=places, coordinates=places.coordinates)

    @property
    def rotated(self) -> Tensor:
        return self.coordinates

    def limits(self, key: BiasKey) -> dict[str, Tensor]:
        return {"groups": self.places.groups(key.patch_window)}
