"""Double-gated short convolutions (LFM2): the state is the last few inputs of the convolution.

Shapes: batch B, tokens T, width D, kernel width W.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import specs.kinds.short_convolution as spec
from zoo import functional
from zoo.components.linear import Linear
from zoo.components.mixer import Mixer, MixerContext, State, StateTensor
from zoo.context import BuildContext
from zoo.core.sharding import HEADS, ROWS, Cut, Section, Sharding, counted
from zoo.registry import builds


@builds(spec.ShortConvolution)
class ShortConvolution(Mixer):
    """output(c * conv(b * x)), with b, c and x from the input."""

    def __init__(self, spec: spec.ShortConvolution, context: BuildContext) -> None:
        super().__init__()
        self.width = context.d_model
        self.input = Linear(context.d_model, 3 * context.d_model, bias=spec.bias)
        self.weight = nn.Parameter(torch.empty(context.d_model, spec.kernel_size))  # D W
        self.bias = nn.Parameter(torch.empty(context.d_model)) if spec.bias else None
        self.output = Linear(context.d_model, context.d_model, bias=spec.bias)

    @property
    def state(self) -> tuple[StateTensor, ...]:
        """The products b * x of the last W - 1 tokens."""
        return (StateTensor("conv", (self.width, self.weight.shape[1] - 1)),)

    def sharding(self) -> Sharding:
        """By channels."""
        cuts = {
            "input": Cut("columns", (Section(self.width),) * 3),
            "weight": HEADS,
            "bias": HEADS,
            "output": ROWS,
        }
        return Sharding(cuts, {"d_model": self.width}, counted(width=self.width), last="output")

    def forward(self, x: Tensor, context: MixerContext, past: State | None) -> tuple[Tensor, State]:
        """x: B T D, past: B D (W - 1) -> B T D, and the same of the last tokens."""
        b, c, x = self.input(x).chunk(3, -1)  # B T D each
        mixed, state = functional.causal_convolution(
            b * x,
            self.weight,
            self.bias,
            None if past is None else past[0],
            context.alignment(self.weight.shape[1]),
        )
        return self.output(c * mixed), (state,)
