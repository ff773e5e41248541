"""GPTQ: rounding a matrix with the least change of its products; later columns compensate for each column's error.

https://arxiv.org/abs/2210.17323, with columns in order of importance (act-order), and with the scales of all blocks searched
beforehand, so that blocks hold neighbouring columns. The codes are those of the paper, computed without an inverse: with
products L L^T, a column's code makes its term of |L^T e| small, e the errors so far (https://arxiv.org/abs/2507.18553).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from exporters.rounding.scales import searched
from specs.base.errors import UserError
from zoo.weights.blocks import Blocks, Quantized

DAMPING = 0.01
"""The damping of the inputs' products, which may be singular, relative to the mean of their diagonal."""

STRIDE = 128
"""The number of columns between two corrections of all later columns."""

PARTS = 16
"""The number of parts of columns whose products are computed one after another: more save work, but are slower."""


@dataclass(frozen=True)
class FactoredProducts:
    """The products of a layer's inputs, factored once for all matrices that read them.

    ``importance``: the mean square of each column up to a factor, K; ``order``: columns in ascending order of it; ``factor``:
    the lower Cholesky factor in that order with each column divided by its diagonal, K K.
    """

    importance: Tensor
    order: Tensor
    factor: Tensor

    @staticmethod
    def of(products: Tensor) -> FactoredProducts:
        """Factor x^T x, K K, which is unchanged. Columns of 0 get the least importance. It uses twice the memory of its argument."""
        importance = products.diagonal().clone()
        importance[importance == 0] = importance[importance > 0].min() if importance.any() else 1.0
        order = importance.argsort()
        matrix = products[order[:, None], order]
        matrix.diagonal().copy_(importance[order] + DAMPING * importance.mean())
        factor = torch.linalg.cholesky(matrix)
        del matrix
        return FactoredProducts(importance, order, factor.div_(factor.diagonal().clone()))


def gptq(
    blocks: Blocks, rows: Tensor, inputs: FactoredProducts, dtype: torch.dtype = torch.float32
) -> Quantized:
    """Choose codes of rows, N K, for inputs x with factored products, so that the summed error of rows @ x is small.

    ``dtype`` is the dtype of scales. Columns whose inputs are always 0 are rounded to nearest. In addition to its arguments,
    which are unchanged, it uses twice the memory of ``rows``.
    """
    count, width = rows.shape
    nearest = searched(blocks, rows, inputs.importance, dtype)
    size, order, factor = blocks.size_in(width), inputs.order, inputs.factor
    scales, zeros = (
        values.to(torch.float32).T.contiguous() for values in (nearest.scales, nearest.zeros)
    )  # B N
    block = (order // size).tolist()
    left = rows.T[order].to(torch.float32)  # K N: columns are contiguous
    codes = torch.empty(width, count, dtype=torch.uint8)
    for end in range(width, 0, -STRIDE):
        start = max(0, end - STRIDE)
        errors = rows.T[order[start:end]].to(torch.float32)  # of the weights themselves
        for column in reversed(range(start, end)):
            later = column + 1 - start
            value = left[column] + factor[column + 1 : end, column] @ errors[later:]
            scale, zero = scales[block[column]], zeros[block[column]]
            code = (value / scale + zero).round_().clamp_(0, blocks.last)
            codes[order[column]] = code
            errors[later - 1] -= (code - zero) * scale
        left[:start].addmm_(factor[start:end, :start].T, errors)
    del left
    return Quantized(blocks.split(codes.T.contiguous()).to(torch.uint8), nearest.scales, nearest.zeros)


def check_finite(rows: Tensor, name: str) -> None:
    """Raise :class:`specs.base.errors.UserError` where the inputs of a weight are not numbers."""
    if len(rows) and not all(bound.isfinite() for bound in rows.aminmax()):
        raise UserError(
            f"{name} has inputs that are NaN or infinite in calibration\n"
            "  Check the weights of the layers before it, which may overflow."
        )


def products_of(rows: Tensor) -> Tensor:
    """x^T x over inputs x, N K -> K K, up to a power of 2, with shrinkage of products that N inputs cannot estimate.

    Products of different columns shrink by the share of their squared correlations that independent inputs would show as well
    (Schäfer and Strimmer, 2005, https://doi.org/10.2202/1544-6115.1175). Otherwise columns would compensate for errors in ways
    that hold only for these inputs.
    """
    if not len(rows):
        return rows.new_zeros(rows.shape[1], rows.shape[1])
    # Products of inputs as they are may overflow, or vanish.
    exponent = torch.frexp(rows.abs().max()).exponent
    products = _squared(torch.ldexp(rows, -exponent))
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


def _squared(rows: Tensor) -> Tensor:
    """x^T x, N K -> K K: a part of its columns at a time, from the diagonal down, and the rest by symmetry."""
    width = rows.shape[1]
    products, step = rows.new_empty(width, width), max(STRIDE, -(-width // PARTS))
    for start in range(0, width, step):
        end = min(start + step, width)
        torch.mm(rows[:, start:].T, rows[:, start:end], out=products[start:, start:end])
        products[start:end, end:] = products[end:, start:end].T
    return products
