"""Scales and zero points of blocks, by search for the least error rather than the full range."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from exporters.graph.quantization.matrix import VALUES
from zoo.weights.blocks import Blocks, Quantized

SHARES = tuple(1 - 0.05 * step for step in range(9))
"""The candidate shares of a block's range: values outside are clipped, values inside get finer steps."""


def searched(blocks: Blocks, rows: Tensor, importance: Tensor | None, dtype: torch.dtype) -> Quantized:
    """The codes nearest to rows, N K, with the scales and zero points of the least sum of squared errors.

    ``importance``, K, weights the squared error of each column: the mean square of its inputs (default: 1).
    """
    weighed = torch.ones(rows.shape[1]) if importance is None else importance
    weights = blocks.split(weighed[None])  # 1 B S; 0 at the padding of a block
    step = max(1, VALUES // rows.shape[1])
    return Quantized.joined(
        _searched(blocks, blocks.split(part), weights, dtype) for part in rows.split(step)
    )


def _searched(blocks: Blocks, split: Tensor, weights: Tensor, dtype: torch.dtype) -> Quantized:
    """The codes of blocks, N B S."""
    (scales, zeros), *others = _candidates(blocks, split, dtype)
    least = _error(blocks, split, scales, zeros, weights)
    for scales_here, zeros_here in others:
        error = _error(blocks, split, scales_here, zeros_here, weights)
        better = error < least
        least = torch.where(better, error, least)
        scales, zeros = torch.where(better, scales_here, scales), torch.where(better, zeros_here, zeros)
    return blocks.rounded(split, scales, zeros)


def _error(blocks: Blocks, split: Tensor, scales: Tensor, zeros: Tensor, weights: Tensor) -> Tensor:
    """The weighted squared error of each block: N B."""
    scale, zero = scales.to(torch.float32)[..., None], zeros.to(torch.float32)[..., None]
    values = (split / scale).add_(zero).round_().clamp_(0, blocks.last).sub_(zero).mul_(scale)
    return values.sub_(split).square_().mul_(weights).sum(-1)


def _candidates(blocks: Blocks, split: Tensor, dtype: torch.dtype) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield scales in a dtype and zero points, N B each, the whole range first."""
    low, high = split.amin(-1), split.amax(-1)  # N B
    for share in SHARES:
        yield blocks.scaled(low * share, high * share, dtype)
    if (
        blocks.symmetric and not blocks.positive
    ):  # the other sign: the largest value is clipped, and the other side gets one more step
        for share in SHARES:
            scales, zeros = blocks.scaled(low * share, high * share, dtype)
            yield -scales, zeros
