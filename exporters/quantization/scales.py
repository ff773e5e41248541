"""Scales and zero points for blocks, by search: those whose rounding costs least, not those that reach the extremes."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from zoo.weights.blocks import Blocks, Quantized

SHARES = tuple(1 - 0.04 * step for step in range(13))
"""The parts of a block's range that are tried: what lies outside is cut, and the rest gets finer steps."""


def searched(blocks: Blocks, rows: Tensor, importance: Tensor | None, dtype: torch.dtype) -> Quantized:
    """The nearest codes to rows, N K, with the scales and zero points of the least sum of squared errors.

    ``importance``: K, what the square of an error in a column weighs: the mean square of its inputs (default: 1).
    """
    split = blocks.split(rows)  # N B S
    weighed = torch.ones(rows.shape[1]) if importance is None else importance
    weights = blocks.split(weighed[None])  # 1 B S; 0 where a block is filled up
    best: Quantized | None = None
    least = torch.full(split.shape[:2], torch.inf)
    for scales, zeros in _candidates(blocks, split, dtype):
        found = blocks.rounded(split, scales, zeros)
        error = (blocks.values(found) - split).square_().mul_(weights).sum(-1)  # N B
        if best is None:
            best, least = found, error
            continue
        better = error < least
        least = torch.where(better, error, least)
        best = Quantized(
            torch.where(better[..., None], found.codes, best.codes),
            torch.where(better, found.scales, best.scales),
            torch.where(better, found.zeros, best.zeros),
        )
    assert best is not None
    return best


def _candidates(blocks: Blocks, split: Tensor, dtype: torch.dtype) -> Iterator[tuple[Tensor, Tensor]]:
    """Scales in a dtype and zero points, N B each; the first are those of the whole range."""
    low, high = split.amin(-1), split.amax(-1)  # N B
    for share in SHARES:
        yield blocks.scaled(low * share, high * share, dtype)
    if (
        blocks.symmetric
    ):  # the other sign: the furthest value is cut, and those on the other side have a step more
        for share in SHARES:
            scales, zeros = blocks.scaled(low * share, high * share, dtype)
            yield -scales, zeros
