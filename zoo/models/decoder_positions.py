"""Positions of the tokens of a decoder's call, given those in its cache.

Shapes: batch B, query length T, past length P, key length S.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from zoo import functional
from zoo.models.reach import Reach


@dataclass(frozen=True)
class DecoderPositions:
    """Positions, B T or 1 T, and which of the new tokens are real: B T, or None for all.

    mask: B S with 1 for real tokens, cached ones included; None if positions alone decide who sees a token.
    start: B, the first slot of the new tokens in a static cache.
    reach: how far they see; None if none sees a token after it.
    coordinates: their frame, row and column, 3 B T, where images are among them; None where all equal the position.
    """

    positions: Tensor
    real: Tensor | None = None
    mask: Tensor | None = None
    start: Tensor | None = None
    reach: Reach | None = None
    coordinates: Tensor | None = None

    @classmethod
    def after(cls, ids: Tensor, past: int, mask: Tensor | None) -> DecoderPositions:
        """After ``past`` tokens in a growing cache.  ids: B T, mask: B (P + T) with 1 for real tokens."""
        length = ids.shape[1]
        if mask is None:
            return cls(functional.positions_from(past, length, ids)[None])
        return cls(functional.token_positions(mask, length), functional.last(mask, length), mask)

    @classmethod
    def at(cls, position_ids: Tensor) -> DecoderPositions:
        """At slots of a static cache: B T, ascending by one, then -1 for padding.

        Later tokens overwrite the slots of padding before any query can see them.
        """
        positions = position_ids.clamp(min=0)  # B T
        return cls(positions, (position_ids >= 0).to(torch.int64), None, positions[:, 0])

    def with_lookahead(self, ahead: Tensor | None) -> DecoderPositions:
        """Let each token attend to ``ahead`` later tokens, B T; None for none."""
        return self if ahead is None else replace(self, reach=Reach(self.positions + ahead))

    def along(self, coordinates: Tensor | None) -> DecoderPositions:
        """The same with a frame, row and column of each token, 3 B T; None where all equal the position."""
        return self if coordinates is None else replace(self, coordinates=coordinates)

    def with_prompt(self, length: Tensor) -> DecoderPositions:
        """The same where the tokens of a prompt see each other.  length: the number of its tokens, (B or 1) 1."""
        inside = self.positions < length
        return replace(self, reach=Reach(torch.where(inside, length - 1, self.positions), inside))

    def first_call(self, past: int) -> Tensor:
        """The number of tokens of a first call, after no ``past`` or from slot 0 on, else 0: (B or 1) 1."""
        before = (
            functional.positions_from(past, 1, self.positions) if self.start is None else self.start
        )  # B or 1
        count = self.positions.amax(1, keepdim=True) + 1  # (B or 1) 1
        return count * (before == 0).to(torch.int64)[:, None]
