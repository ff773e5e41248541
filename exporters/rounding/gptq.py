"""Rounding a matrix so that its products change least, not its values: each column's error is made up for by later columns.

GPTQ, https://arxiv.org/abs/2210.17323, with its columns in the order of how much they matter (act-order) and the scales of
all blocks found beforehand, so that blocks hold columns that stand together.
"""

from __future__ import annotations

import torch
from torch import Tensor

from exporters.rounding.scales import searched
from zoo.weights.blocks import Blocks, Quantized

DAMPING = 0.01
"""What is added to the diagonal of the inputs' products, as a part of its mean: they may be singular."""

STRIDE = 128
"""Columns between two corrections of all that follow."""


def gptq(blocks: Blocks, rows: Tensor, products: Tensor, dtype: torch.dtype = torch.float32) -> Quantized:
    """Codes of rows, N K, for inputs x whose products x^T x are K K: the error of rows @ x is small, summed over the inputs.

    Scales are of a dtype.  Inputs that are 0 throughout say nothing about their columns, which go to the nearest codes.
    """
    width = rows.shape[1]
    importance = products.diagonal().clone()
    importance[importance == 0] = importance[importance > 0].min() if importance.any() else 1.0
    found = searched(blocks, rows, importance, dtype)
    order = importance.argsort(descending=True)
    inverse = _factor_of_inverse(products, importance, order)  # K K, upper
    size, (count, _) = blocks.size_in(width), rows.shape
    scales = found.scales.to(torch.float32)[:, order // size]  # N K
    zeros = found.zeros.to(torch.float32)[:, order // size]
    left, codes = rows.to(torch.float32)[:, order], torch.empty(count, width)
    for start in range(0, width, STRIDE):
        end = min(start + STRIDE, width)
        errors = torch.empty(count, end - start)
        for column in range(start, end):
            done = column - start
            value = left[:, column] - errors[:, :done] @ inverse[start:column, column]
            scale, zero = scales[:, column], zeros[:, column]
            code = (value / scale + zero).round_().clamp_(0, blocks.last)
            codes[:, column] = code
            errors[:, done] = (value - (code - zero) * scale) / inverse[column, column]
        left[:, end:] -= errors @ inverse[start:end, end:]
    placed = torch.empty_like(codes)
    placed[:, order] = codes
    split = blocks.split(placed).to(torch.uint8)
    return Quantized(split, found.scales, found.zeros)


def _factor_of_inverse(products: Tensor, importance: Tensor, order: Tensor) -> Tensor:
    """The upper Cholesky factor of the inverse of the products, with their columns in order."""
    ordered = products[order][:, order]
    ordered.diagonal().copy_(importance[order] + DAMPING * importance.mean())
    lower = torch.linalg.cholesky(ordered)
    return torch.linalg.cholesky(torch.cholesky_inverse(lower), upper=True)
