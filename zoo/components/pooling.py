"""One vector for a sequence."""

from __future__ import annotations

from typing import Literal

from torch import Tensor


def pool(x: Tensor, mask: Tensor | None, pooling: Literal["first", "last", "mean"]) -> Tensor:
    """The first or last real token's vector, or the mean over real tokens.

    x: B T D, mask: B T with 1 for real tokens, padding on either side, or None for all real -> B D.
    """
    if mask is None:
        return x.mean(1) if pooling == "mean" else x[:, 0 if pooling == "first" else -1]
    count = mask.cumsum(1)  # B T
    if pooling == "first":
        chosen = mask * (count == 1)
    elif pooling == "last":
        chosen = mask * (count == count[:, -1:])
    else:
        chosen = mask / count[:, -1:].clamp(min=1)
    return (chosen.to(x.dtype)[:, None] @ x)[:, 0]  # (B 1 T @ B T D) -> B D
