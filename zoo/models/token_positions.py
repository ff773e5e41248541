"""Positions of the tokens of a call, given those in the cache.

Shapes: batch B, query length T, past length P, key length S.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from zoo import functional
from zoo.components.mixer import BiasKey


@dataclass(frozen=True)
class TokenPositions:
    """Positions, B T or 1 T, and which of the new tokens are real: B T, or None for all.

    mask: B S with 1 for real tokens, cached ones included; None if positions alone decide who sees a token.
    start: B, the first slot of the new tokens in a static cache; None for a growing cache.
    ids: B T, the new tokens; None for other inputs.
    """

    positions: Tensor
    real: Tensor | None = None
    mask: Tensor | None = None
    start: Tensor | None = None
    ids: Tensor | None = None

    @classmethod
    def all(cls, positions: Tensor, mask: Tensor | None) -> Self:
        """Of a whole sequence.  positions and mask: B T."""
        return cls(positions, mask, mask)

    @classmethod
    def after(cls, ids: Tensor, past: int, mask: Tensor | None) -> Self:
        """After ``past`` tokens in a growing cache.  ids: B T, mask: B (P + T) with 1 for real tokens."""
        length = ids.shape[1]
        if mask is None:
            return cls(functional.positions_from(past, length, ids)[None])
        return cls(functional.token_positions(mask, length), functional.last(mask, length), mask)

    @classmethod
    def at(cls, position_ids: Tensor) -> Self:
        """At slots of a static cache: B T, ascending by one, then -1 for padding.

        Later tokens overwrite the slots of padding before any query can see them.
        """
        positions = position_ids.clamp(min=0)  # B T
        return cls(positions, (position_ids >= 0).to(torch.int64), None, positions[:, 0])

    @property
    def rotated(self) -> Tensor:
        """The positions by which queries and keys are rotated: B T."""
        return self.positions

    def keys(self, x: Tensor, past: int) -> Tensor:
        """The positions of all tokens, ``past`` cached ones or slots included: B S or 1 S.  Only real tokens count, so padding
        shifts none.  x: B T D."""
        if self.start is not None:
            return functional.positions_from(0, past, x)[None]
        length = past + x.shape[1]
        if self.mask is None:
            return functional.positions_from(0, length, x)[None]
        return functional.token_positions(self.mask, length)

    def bias(
        self, key: BiasKey, added: Tensor | None, keys: Tensor, like: Tensor, *, causal: bool
    ) -> Tensor | None:
        """The bias of the scores of attentions with a key, with what their position adds: broadcast to B H T S, or None."""
        return functional.attention_bias(
            self.mask,
            added,
            self.positions,
            keys,
            like,
            causal=causal,
            window=key.window,
            chunk=key.chunk,
            **self.limits(key),
        )

    def limits(self, key: BiasKey) -> dict[str, Tensor]:
        """Further arguments of ``functional.attention_bias``: none, as each token sees itself and those before it, or all."""
        return {}
