"""Rotary frequencies, in float32 as in the reference implementations."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from specs.base.base import Component
from specs.base.registry import load_implementation
from specs.kinds.rope import Rope
from specs.kinds.rope_scaling import (
    DynamicNTKScaling,
    LinearScaling,
    Llama3Scaling,
    LongRopeScaling,
    ProportionalScaling,
    YarnScaling,
)
from zoo import functional

Frequencies = tuple[float, ...] | Callable[[Tensor], Tensor]
"""Radians per position of each rotated pair, or a function from the input length, a scalar, to them, R."""


@dataclass(frozen=True)
class Rotation:
    """The inputs of RoPE scaling: theta, the rotated dimensions, and the model's context length."""

    theta: float
    dimensions: int
    context_length: int | None

    @property
    def exponents(self) -> Tensor:
        """The exponent of theta for each pair: dimensions / 2."""
        return torch.arange(0, self.dimensions, 2, dtype=torch.float32, device="cpu") / self.dimensions


def rope_frequencies(
    spec: Rope, context_length: int | None, dimensions: int, *, fixed_length: bool = False
) -> tuple[Frequencies, float]:
    """The frequencies of dimensions / 2 pairs, and the amplitude of cos and sin.

    With a ``fixed_length``, all inputs are as long as the context, and length-dependent frequencies become constants.
    """
    rotation = Rotation(spec.theta, dimensions, context_length)
    if spec.scaling is not None:
        load_implementation(spec.scaling)
    frequencies, amplitude = scaled(spec.scaling, 1.0 / spec.theta**rotation.exponents, rotation)
    if fixed_length and not isinstance(frequencies, Tensor):
        assert context_length is not None
        frequencies = frequencies(torch.tensor(context_length, device="cpu"))
    return _numbers(frequencies) if isinstance(frequencies, Tensor) else frequencies, amplitude


def _numbers(values: Tensor) -> tuple[float, ...]:
    return tuple(values.tolist())


@functools.singledispatch
def scaled(
    scaling: Component | None, frequencies: Tensor, rotation: Rotation
) -> tuple[Tensor | Callable[[Tensor], Tensor], float]:
    """Rescaled frequencies and the amplitude; plugins register an implementation for their scaling."""
    return frequencies, 1.0


@scaled.register
def _linear(scaling: LinearScaling, frequencies: Tensor, rotation: Rotation) -> tuple[Tensor, float]:
    return frequencies / scaling.factor, 1.0


@scaled.register
def _proportional(
    scaling: ProportionalScaling, frequencies: Tensor, rotation: Rotation
) -> tuple[Tensor, float]:
    kept = int(scaling.fraction * rotation.dimensions // 2)
    still = torch.arange(rotation.dimensions // 2, device="cpu") >= kept
    return frequencies.masked_fill(still, 0.0) / scaling.factor, 1.0


@scaled.register
def _llama3(scaling: Llama3Scaling, frequencies: Tensor, rotation: Rotation) -> tuple[Tensor, float]:
    wavelengths = 2 * math.pi / frequencies
    turns = scaling.original_context_length / wavelengths  # over the original context
    kept = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    kept = kept.nan_to_num(1.0).clamp(0, 1)  # a number by 0 where no transition is between them
    return (1 - kept) * frequencies / scaling.factor + kept * frequencies, 1.0


@scaled.register
def _yarn(scaling: YarnScaling, frequencies: Tensor, rotation: Rotation) -> tuple[Tensor, float]:
    theta, dimensions = rotation.theta, rotation.dimensions

    def pair_turning(times: float) -> float:  # the pair that turns so often over the original context
        length = scaling.original_context_length
        return dimensions * math.log(length / (times * 2 * math.pi)) / (2 * math.log(theta))

    low, high = pair_turning(scaling.beta_fast), pair_turning(scaling.beta_slow)
    if scaling.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dimensions - 1)
    ramp = (torch.arange(dimensions // 2, dtype=torch.float32, device="cpu") - low) / ((high - low) or 0.001)
    divided = ramp.clamp(0, 1)
    blended = frequencies / scaling.factor * divided + frequencies * (1 - divided)
    return blended, scaling.amplitude(rotation.context_length)


@scaled.register
def _dynamic_ntk(
    scaling: DynamicNTKScaling, frequencies: Tensor, rotation: Rotation
) -> tuple[Callable[[Tensor], Tensor], float]:
    dimensions = rotation.dimensions
    return functools.partial(
        functional.dynamic_frequencies,
        exponents=_numbers(rotation.exponents),
        theta=rotation.theta,
        factor=scaling.factor,
        power=dimensions / (dimensions - 2),
        original=scaling.original_context_length,
    ), 1.0


@scaled.register
def _longrope(
    scaling: LongRopeScaling, frequencies: Tensor, rotation: Rotation
) -> tuple[Callable[[Tensor], Tensor], float]:
    original, powers = scaling.original_context_length, rotation.theta**rotation.exponents
    short, long = (
        _numbers(1.0 / (torch.tensor(factors, dtype=torch.float32, device="cpu") * powers))
        for factors in (scaling.short_factor, scaling.long_factor)
    )
    choose = functools.partial(functional.frequencies_by_length, short=short, long=long, original=original)
    return choose, scaling.amplitude(rotation.context_length)
