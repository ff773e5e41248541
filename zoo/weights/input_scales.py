"""Static scales of a product's inputs, found by calibration and stored with the weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

CODES = 255
"""The highest code of an input in 8 bits."""

REST = 254
"""The ratio of the first 8 bits' scale to the residual's; the residual is at most half a step on either side."""

MIDDLE = 128
"""The zero point of the residual."""


@dataclass(frozen=True, eq=False)
class InputScales:
    """How the inputs x of a product, ... K, are rounded.

    In 8 bits, x * multipliers becomes codes from 0 to 255 with a scale and a zero point, and the columns of the
    weights are divided by the multipliers (SmoothQuant, Xiao et al., 2022). In 16 bits, the residual of 8 bits is
    rounded again with a 254th of the scale, and multipliers are 1.
    """

    multipliers: Tensor
    scale: float
    zero: int
    bits: int = 8

    @classmethod
    def ranging(cls, multipliers: Tensor, low: float, high: float, bits: int = 8) -> InputScales:
        """Scales for x * multipliers from low to high, a range that is extended to 0."""
        low, high = min(low, 0.0), max(high, 0.0)
        scale = float(torch.tensor((high - low) / CODES or 1.0))  # as float32 has it
        return cls(multipliers, scale, min(CODES, max(0, round(-low / scale))), bits)

    @classmethod
    def for_checking(cls, width: int, bits: int) -> InputScales:
        """Scales without calibration, for random weights: none is 1 or 0, so that a missing one shows."""
        pattern = torch.tensor([0.5, 2.0, 4.0]).repeat(-(-width // 3))[:width]
        return cls(pattern if bits == 8 else torch.ones(width), 1 / 16, 100, bits)

    def rounded(self, x: Tensor) -> Tensor:
        """x rounded to its codes."""
        scaled = x * self.multipliers
        near = _rounded(scaled, self.scale, self.zero)
        if self.bits == 16:
            near = near + _rounded(scaled - near, self.rest_scale, MIDDLE)
        return near / self.multipliers

    @property
    def rest_scale(self) -> float:
        """The scale of the residual of 8 bits."""
        return self.scale / REST


def _rounded(x: Tensor, scale: float, zero: int) -> Tensor:
    return ((x / scale).round() + zero).clamp(0, CODES).sub(zero) * scale
