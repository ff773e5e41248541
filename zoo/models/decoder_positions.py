"""Positions of the tokens of a decoder's call, given those in its cache.

Shapes: batch B, query length T, past length P, key length S.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from zoo import functional


@dataclass(frozen=True)
class DecoderPositions:
    """Positions, B T or 1 T, and which of the new tokens are real: B T, or None for all.

    mask: B S with 1 for real tokens, cached ones included; None if positions alone decide who sees a token.
    start: B, the first slot of the new tokens in a static cache.
    last: B T, the position of the last token that each sees; None for its own.
    """

    positions: Tensor
    real: Tensor | None = None
    mask: Tensor | None = None
    start: Tensor | None = None
    last: Tensor | None = None

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

    def seeing(self, ahead: Tensor | None) -> DecoderPositions:
        """The same where each token sees as many after it: B T; None for none."""
        return self if ahead is None else replace(self, last=self.positions + ahead)
