"""The rotary frequencies of a spec, in float32 as the reference implementations compute them."""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from specs.base import Component
from specs.position import Rope
from specs.rope_scaling import LinearScaling, Llama3Scaling, YarnScaling


def rope_frequencies(spec: Rope, dimensions: int) -> tuple[tuple[float, ...], float]:
    """Radians per position of each rotated pair (dimensions / 2 of them), and the amplitude of cos and sin."""
    exponents = torch.arange(0, dimensions, 2, dtype=torch.float32, device="cpu") / dimensions
    frequencies, amplitude = _scaled(spec.scaling, 1.0 / spec.theta**exponents, spec.theta, dimensions)
    values: list[float] = frequencies.tolist()
    return tuple(values), amplitude


@functools.singledispatch
def _scaled(
    scaling: Component | None, frequencies: Tensor, theta: float, dimensions: int
) -> tuple[Tensor, float]:
    """Rescaled frequencies and the amplitude; plugins register their own scaling here."""
    return frequencies, 1.0


@_scaled.register
def _linear(
    scaling: LinearScaling, frequencies: Tensor, theta: float, dimensions: int
) -> tuple[Tensor, float]:
    return frequencies / scaling.factor, 1.0


@_scaled.register
def _llama3(
    scaling: Llama3Scaling, frequencies: Tensor, theta: float, dimensions: int
) -> tuple[Tensor, float]:
    wavelengths = 2 * math.pi / frequencies
    turns = scaling.original_context_length / wavelengths  # over the original context
    kept = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    kept = kept.clamp(0, 1)
    return (1 - kept) * frequencies / scaling.factor + kept * frequencies, 1.0


@_scaled.register
def _yarn(scaling: YarnScaling, frequencies: Tensor, theta: float, dimensions: int) -> tuple[Tensor, float]:
    def pair_turning(times: float) -> float:  # the pair that turns so often over the original context
        length = scaling.original_context_length
        return dimensions * math.log(length / (times * 2 * math.pi)) / (2 * math.log(theta))

    low, high = pair_turning(scaling.beta_fast), pair_turning(scaling.beta_slow)
    if scaling.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dimensions - 1)
    ramp = (torch.arange(dimensions // 2, dtype=torch.float32, device="cpu") - low) / ((high - low) or 0.001)
    divided = ramp.clamp(0, 1)
    amplitude = scaling.attention_factor
    if amplitude is None:
        amplitude = 0.1 * math.log(scaling.factor) + 1.0 if scaling.factor > 1 else 1.0
    return frequencies / scaling.factor * divided + frequencies * (1 - divided), amplitude
