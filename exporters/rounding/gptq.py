"""GPTQ: rounding a matrix with the least change of its products; later columns compensate for each column's error.

https://arxiv.org/abs/2210.17323, with columns in order of importance (act-order), and with the scales of all blocks searched
beforehand, so that blocks hold neighbouring columns.
"""

from __future__ import annotations

import torch
from torch import Tensor

from exporters.rounding.scales import searched
from zoo.weights.blocks import Blocks, Quantized

DAMPING = 0.01
"""The damping of the inputs' products, which may be singular, relative to the mean of their diagonal."""

STRIDE = 128
"""The number of columns between two corrections of all later columns."""


def gptq(blocks: Blocks, rows: Tensor, products: Tensor, dtype: torch.dtype = torch.float32) -> Quantized:
    """Choose codes of rows, N K, for inputs x with products x^T x, K K, so that the summed error of rows @ x is small.

    ``dtype`` is the dtype of scales. Columns whose inputs are always 0 are rounded to nearest. In addition to its arguments,
    which are unchanged, it uses twice the memory of each.
    """
    width = rows.shape[1]
    importance = products.diagonal().clone()
    importance[importance == 0] = importance[importance > 0].min() if importance.any() else 1.0
    nearest = searched(blocks, rows, importance, dtype)
    order = importance.argsort(descending=True)
    inverse = _factor_of_inverse(products, importance, order)  # K K, upper
    size, (count, _) = blocks.size_in(width), rows.shape
    scales, zeros = (
        values.to(torch.float32).T.contiguous() for values in (nearest.scales, nearest.zeros)
    )  # B N
    block = (order // size).tolist()
    left = rows.T[order].to(torch.float32)  # K N: columns are contiguous
    codes = torch.empty(width, count, dtype=torch.uint8)
    for start in range(0, width, STRIDE):
        end = min(start + STRIDE, width)
        errors = torch.empty(end - start, count)
        for column in range(start, end):
            done = column - start
            value = left[column] - inverse[start:column, column] @ errors[:done]
            scale, zero = scales[block[column]], zeros[block[column]]
            code = (value / scale + zero).round_().clamp_(0, blocks.last)
            codes[order[column]] = code
            errors[done] = (value - (code - zero) * scale) / inverse[column, column]
        left[end:].addmm_(inverse[start:end, end:].T, errors, alpha=-1)
    del left, inverse
    return Quantized(blocks.split(codes.T.contiguous()).to(torch.uint8), nearest.scales, nearest.zeros)


def products_of(rows: Tensor) -> Tensor:
    """x^T x over inputs x, N K -> K K, with shrinkage of products that N inputs cannot estimate.

    Products of different columns shrink by the share of their squared correlations that independent inputs would show as well
    (Schäfer and Strimmer, 2005, https://doi.org/10.2202/1544-6115.1175). Otherwise columns would compensate for errors in ways
    that hold only for these inputs.
    """
    products = rows.T @ rows
    squares = products.diagonal().clone()
    scale = squares.clamp(min=torch.finfo(torch.float32).tiny).rsqrt()
    live = (squares > 0).float()
    seen, random = 0.0, 0.0  # sums over pairs of columns that are not 0, some columns at a time
    for start in range(0, len(products), STRIDE):
        part = slice(start, start + STRIDE)
        correlations = (products[part] * scale[part, None] * scale).square_()  # S K
        correlations[:, part].fill_diagonal_(0)
        seen += float(correlations.sum())
        random += float(live[part] @ (1 - correlations).square_() @ live - live[part].sum()) / len(rows)
    products *= 1 - min(1.0, random / max(seen, torch.finfo(torch.float32).tiny))
    products.diagonal().copy_(squares)
    return products


def _factor_of_inverse(products: Tensor, importance: Tensor, order: Tensor) -> Tensor:
    """The upper Cholesky factor of the inverse of the products, with columns in ``order``."""
    matrix = products[order[:, None], order]
    matrix.diagonal().copy_(importance[order] + DAMPING * importance.mean())
    matrix = torch.linalg.cholesky(matrix)  # one after another, so that at most two are in memory
    matrix = torch.cholesky_inverse(matrix)
    return torch.linalg.cholesky(matrix, upper=True)
