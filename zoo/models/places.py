"""Where the tokens of a decoder's call stand among those before them.

Shapes: batch B, query length T, past length P, key length S.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from zoo import functional


@dataclass(frozen=True)
class Places:
    """Positions, B T or 1 T, and which of the new tokens are real: B T, or None for all.

    mask: B S with 1 for the real ones of all tokens so far, or None where a place alone says who sees it.
    start: B, the first of the places that the new tokens get in a cache that does not grow.
    """

    positions: Tensor
    real: Tensor | None = None
    mask: Tensor | None = None
    start: Tensor | None = None

    @classmethod
    def behind(cls, ids: Tensor, past: int, mask: Tensor | None) -> Places:
        """Behind ``past`` tokens in a cache that grows.  ids: B T, mask: B (P + T) with 1 for real tokens."""
        length = ids.shape[1]
        if mask is None:
            return cls(functional.positions_from(past, length, ids)[None])
        return cls(functional.token_positions(mask, length), mask[:, past:], mask)

    @classmethod
    def at(cls, position_ids: Tensor) -> Places:
        """At places of a cache that has room: B T, ascending one by one, and -1 for padding behind them.

        What padding writes is overwritten by the tokens that get its places, and seen by none before.
        """
        positions = position_ids.clamp(min=0)  # B T
        return cls(positions, (position_ids >= 0).to(torch.int64), None, positions[:, 0])
