"""Convolutions: the torch modules, but initialized by the model's recipe."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo.core.initialization import Distribution
from zoo.core.precision import in_dtype, wide


class Convolution1d(nn.Conv1d):
    """``torch.nn.Conv1d`` that leaves its weights unset, and works in their dtype: B C T -> B d_out T'."""

    def reset_parameters(self) -> None:
        """No-op: the builder initializes all weights."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(in_dtype(x, self.weight.dtype))


class Convolution2d(nn.Conv2d):
    """``torch.nn.Conv2d`` that leaves its weights unset, and works in their dtype: B C H W -> B d_out H' W'."""

    def reset_parameters(self) -> None:
        """No-op: the builder initializes all weights."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(in_dtype(x, self.weight.dtype))


class WeightNormConvolution(nn.Module):
    """A convolution over time whose kernel has a direction, and a magnitude at each of its K places (weight normalisation:
    Salimans and Kingma, 2016).

    Half a kernel of zeros is added on either side: B D T -> B D T, or B D (T + 1) for an even kernel.
    """

    def __init__(self, width: int, kernel: int, groups: int) -> None:
        super().__init__()
        self.padding, self.groups = kernel // 2, groups
        self.magnitude = nn.Parameter(torch.empty(1, 1, kernel))
        self.direction = nn.Parameter(torch.empty(width, width // groups, kernel))
        self.bias = nn.Parameter(torch.empty(width))

    def initial(self, leaf: str) -> Distribution | None:
        """Magnitudes that give the kernel a standard deviation of 2 / sqrt(K D), as wav2vec 2.0 draws it."""
        _, inputs, kernel = self.direction.shape
        constants = {"magnitude": 2 * math.sqrt(inputs / kernel), "bias": 0.0}
        return Distribution(constant=constants[leaf]) if leaf in constants else None

    def forward(self, x: Tensor) -> Tensor:
        direction = wide(self.direction)
        length = (direction * direction).sum((0, 1), keepdim=True).sqrt()  # 1 1 K
        kernel = in_dtype(direction * (wide(self.magnitude) / length), self.direction.dtype)
        return F.conv1d(
            in_dtype(x, kernel.dtype), kernel, self.bias, padding=self.padding, groups=self.groups
        )
