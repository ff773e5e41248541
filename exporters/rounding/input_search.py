"""Static scales of a product's inputs, by search for the multipliers whose rounding changes the product least."""

from __future__ import annotations

import torch
from torch import Tensor

from zoo.weights.blocks import Blocks
from zoo.weights.input_scales import InputScales

STRENGTHS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""The candidate shares of the range differences between input columns to move to the weights: 0 none, 1 all."""

ROWS = 1024
"""The number of inputs for comparing multipliers."""

LEAST = 1e-5
"""The lower bound of a column's range."""

ROOM = 4.0
"""The range of 16-bit inputs as a multiple of the observed range: the largest inputs are rare, and steps are fine."""


def searched_inputs(x: Tensor, weight: Tensor, blocks: Blocks, bits: int) -> InputScales:
    """Search scales for the inputs x, M K, of a product with a weight, N K, stored in blocks."""
    low, high = float(x.min()), float(x.max())
    if bits == 16:
        return InputScales.ranging(torch.ones(x.shape[1]), ROOM * low, ROOM * high, bits)
    some = x[:: max(1, len(x) // ROWS)]
    wanted = some @ weight.T
    candidates = [_smoothed(x, weight, strength) for strength in STRENGTHS]
    errors = [_error(some, weight, blocks, scales, wanted) for scales in candidates]
    return candidates[errors.index(min(errors))]


def _smoothed(x: Tensor, weight: Tensor, strength: float) -> InputScales:
    """Scales that even out the ranges of input columns and weight columns (SmoothQuant, https://arxiv.org/abs/2211.10438,
    equation 4)."""
    inputs, weights = (values.abs().amax(0).clamp(min=LEAST) for values in (x, weight))
    multipliers = weights ** (1 - strength) / inputs**strength
    multipliers = multipliers / multipliers.log().mean().exp()
    scaled = x * multipliers
    return InputScales.ranging(multipliers, float(scaled.min()), float(scaled.max()))


def _error(x: Tensor, weight: Tensor, blocks: Blocks, scales: InputScales, wanted: Tensor) -> float:
    stored = (
        blocks.restore(blocks.quantize(weight / scales.multipliers), weight.shape[1]) * scales.multipliers
    )
    return float((scales.rounded(x) @ stored.T - wanted).square().mean())
