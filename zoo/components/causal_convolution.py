"""Depthwise convolutions over tokens whose state is their last inputs.

Shapes: batch B, tokens T, channels D, kernel width W.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from zoo import functional
from zoo.components.mixer import MixerContext, StateTensor
from zoo.core.initialization import Distribution
from zoo.core.precision import in_dtype


class CausalConvolution(nn.Module):
    """Each channel's weighted sum of a token and the W - 1 before it, and a bias."""

    def __init__(self, channels: int, width: int, *, bias: bool) -> None:
        super().__init__()
        self.channels = channels
        self.weight = nn.Parameter(torch.empty(channels, width))  # D W
        self.bias = nn.Parameter(torch.empty(channels)) if bias else None

    def initial(self, leaf: str) -> Distribution | None:
        """Weights uniform as in ``torch.nn.Conv1d``, and biases of 0."""
        return Distribution(bound=self.weight.shape[1] ** -0.5) if leaf == "weight" else None

    @property
    def state(self) -> StateTensor:
        """The inputs of the last W - 1 tokens."""
        return StateTensor("conv", (self.channels, self.weight.shape[1] - 1))

    def forward(self, x: Tensor, context: MixerContext, past: Tensor | None) -> tuple[Tensor, Tensor]:
        """x: B T D, past: B D (W - 1), or None at the start -> B T D, and the last inputs."""
        x, width = in_dtype(x, self.weight.dtype), self.weight.shape[1]
        return functional.causal_convolution(x, self.weight, self.bias, past, context.alignment(width))
