"""Rotary position embeddings.

Shapes: batch B, query length T, heads H, head width K, rotated pairs R.
"""

from __future__ import annotations

import functools
import operator

import torch
from torch import Tensor

from zoo.functional.decorator import semantic_op
from zoo.functional.tensors import constant


@semantic_op
def rotary_embedding(x: Tensor, cos: Tensor, sin: Tensor, *, dimensions: int, interleaved: bool) -> Tensor:
    """Rotate the first ``dimensions`` of each head by the angles of its position (Su et al., 2021).

    x: B H T K, cos and sin: B T R with R = dimensions / 2 -> B H T K.
    """
    cos, sin = cos[:, None], sin[:, None]  # B 1 T R
    first, rest = x[..., :dimensions], x[..., dimensions:]
    if interleaved:
        a, b = first[..., 0::2], first[..., 1::2]  # B H T R
        rotated = torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)
    else:
        a, b = first[..., : dimensions // 2], first[..., dimensions // 2 :]  # B H T R
        rotated = torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
    return torch.cat((rotated, rest), -1)


@semantic_op
def rotate(
    x: Tensor,
    positions: Tensor,
    frequencies: tuple[float, ...] | Tensor,
    *,
    amplitude: float,
    dimensions: int,
    interleaved: bool,
) -> Tensor:
    """Rotate queries or keys by the angles of their positions; ``amplitude`` scales the cosines and sines.

    x: B H T K, positions: B T, frequencies: R radians per position -> B H T K.
    """
    turned = angles(positions, frequencies)  # B T R
    cos, sin = (turned.cos() * amplitude).to(x.dtype), (turned.sin() * amplitude).to(x.dtype)
    return rotary_embedding(x, cos, sin, dimensions=dimensions, interleaved=interleaved)


@semantic_op
def angles(positions: Tensor, frequencies: tuple[float, ...] | Tensor) -> Tensor:
    """positions: B T, frequencies: R radians per position -> B T R in float32."""
    factors = constant(frequencies, positions) if isinstance(frequencies, tuple) else frequencies
    return positions[..., None].to(torch.float32) * factors


def angles_by_axis(coordinates: Tensor, frequencies: tuple[tuple[float, ...], ...]) -> Tensor:
    """The sum over axes of position times frequency: A B T, A times R radians per position -> B T R in float32.

    A pair that rotates with one axis has the frequency 0 for the others.
    """
    turned = [angles(coordinates[axis], own) for axis, own in enumerate(frequencies)]  # B T R each
    return functools.reduce(operator.add, turned)


@semantic_op
def dynamic_frequencies(
    length: Tensor, *, exponents: tuple[float, ...], theta: float, factor: float, power: float, original: int
) -> Tensor:
    """Rotary frequencies whose theta grows as an input exceeds ``original`` tokens: a scalar -> R, float32."""
    longer = length.clamp(min=original).to(torch.float32)
    grown = theta * (factor * longer / original - (factor - 1)) ** power
    return 1.0 / grown ** constant(exponents, length)


@semantic_op
def frequencies_by_length(
    length: Tensor, *, short: tuple[float, ...], long: tuple[float, ...], original: int
) -> Tensor:
    """``short`` rotary frequencies for inputs of up to ``original`` tokens, else ``long``: a scalar -> R, float32."""
    return torch.where(length > original, constant(long, length), constant(short, length))
