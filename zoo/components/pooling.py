"""One vector for a sequence."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from specs.head import AtToken, Pooling


@dataclass(frozen=True)
class TokenSequence:
    """What a head may ask about the tokens whose hidden states it is given.

    ids: B T, or None where something else than tokens went in; mask: B T with 1 for real tokens, padding on
    either side, or None where all are real.
    """

    ids: Tensor | None
    mask: Tensor | None


def pool(x: Tensor, tokens: TokenSequence, pooling: Pooling) -> Tensor:
    """The vector of a real token, or the mean over real tokens: x: B T D -> B D.

    The first token with a certain id is the last token where a sequence has none.
    """
    if isinstance(pooling, AtToken):
        assert tokens.ids is not None
        found = (tokens.ids == pooling.token).to(torch.int64)  # B T
        if tokens.mask is not None:
            found = found * tokens.mask
        count = found.cumsum(1)
        return torch.where(count[:, -1:] > 0, _mix(x, found * (count == 1)), pool(x, tokens, "last"))
    if tokens.mask is None:
        return x.mean(1) if pooling == "mean" else x[:, 0 if pooling == "first" else -1]
    count = tokens.mask.cumsum(1)  # B T
    if pooling == "first":
        return _mix(x, tokens.mask * (count == 1))
    if pooling == "last":
        return _mix(x, tokens.mask * (count == count[:, -1:]))
    return _mix(x, tokens.mask / count[:, -1:].clamp(min=1))


def _mix(x: Tensor, shares: Tensor) -> Tensor:
    """The sum over tokens, each times its share: B T D and B T -> B D."""
    return (shares.to(x.dtype)[:, None] @ x)[:, 0]  # (B 1 T @ B T D) -> B D
