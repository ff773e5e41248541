"""Mamba: channels whose states decay at rates that the input selects.

Shapes: batch B, tokens T, channels D, states of a channel N, rank of the step sizes R, kernel width W.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import specs.mamba as spec
from zoo import functional
from zoo.components.activation import activation
from zoo.components.causal_convolution import CausalConvolution
from zoo.components.decay import RATES, STEPS
from zoo.components.linear import Linear
from zoo.components.mixer import Mixer, MixerContext, State, StateTensor
from zoo.context import BuildContext
from zoo.initialization import Distribution
from zoo.precision import wide
from zoo.registry import build_component, builds
from zoo.sharding import HEADS, ROWS, SHARED, SUMMED, Cut, Section, Sharding, counted


@builds(spec.Mamba)
class Mamba(Mixer):
    """output((c h + skip * x) * silu(gate)), where h_t = exp(step * a) h_(t-1) + step * b x are a channel's states."""

    def __init__(self, spec: spec.Mamba, context: BuildContext) -> None:
        super().__init__()
        self.width, self.states, self.rank = spec.width, spec.state_size, spec.step_rank
        self.input = Linear(context.d_model, 2 * spec.width, bias=spec.bias)
        self.convolution = CausalConvolution(spec.width, spec.kernel_size, bias=spec.convolution_bias)
        self.activation = activation(spec.activation)
        self.selection = Linear(spec.width, spec.step_rank + 2 * spec.state_size, bias=False)
        self.step = StepSize(spec.step_rank, spec.width)
        self.step_norm = self.b_norm = self.c_norm = None
        if spec.norm is not None:
            self.step_norm = build_component(spec.norm, replace(context, d_model=spec.step_rank))
            self.b_norm, self.c_norm = (
                build_component(spec.norm, replace(context, d_model=spec.state_size)) for _ in range(2)
            )
        self.rate_log = nn.Parameter(torch.empty(spec.width, spec.state_size))
        self.skip = nn.Parameter(torch.empty(spec.width))
        self.output = Linear(spec.width, context.d_model, bias=spec.bias)

    def initial(self, leaf: str) -> Distribution | None:
        """Rates of decay between 1/16 and 16."""
        return RATES if leaf == "rate_log" else None

    @property
    def state(self) -> tuple[StateTensor, ...]:
        """The last inputs of the convolution, and the states of all channels."""
        return self.convolution.state, StateTensor("ssm", (self.width, self.states), torch.float32)

    def sharding(self) -> Sharding:
        """By channels; every process has the step sizes' latents, b and c."""
        width = self.width
        cuts = {
            "input": Cut("columns", (Section(width), Section(width))),
            "convolution": HEADS,
            "activation": SHARED,
            "selection": SUMMED,
            "step": HEADS,
            **dict.fromkeys(("step_norm", "b_norm", "c_norm"), SHARED),
            **dict.fromkeys(("rate_log", "skip"), HEADS),
            "output": ROWS,
        }
        divided = counted(**{"width": width, "convolution.channels": width})
        return Sharding(cuts, {"width": width}, divided, last="output")

    def forward(self, x: Tensor, context: MixerContext, past: State | None) -> tuple[Tensor, State]:
        """x: B T and d_model, past: B D (W - 1) and B D N -> B T and d_model, and the same state."""
        last_inputs, states = (None, None) if past is None else past
        x, gate = self.input(x).chunk(2, -1)  # B T D each
        x, last_inputs = self.convolution(x, context, last_inputs)
        x = self.activation(x)
        step, b, c = self.selection(x).split((self.rank, self.states, self.states), -1)  # B T R, B T N twice
        if self.step_norm is not None:
            step, b, c = self.step_norm(step), self.b_norm(b), self.c_norm(c)  # type: ignore[misc]
        rates = -wide(self.rate_log).exp()  # D N
        mixed, states = functional.selective_scan(wide(x), self.step(step), rates, b, c, states, context.real)
        mixed = (mixed + wide(x) * wide(self.skip)) * F.silu(wide(gate))
        return self.output(mixed), (last_inputs, states)


class StepSize(Linear):
    """softplus(weight x + bias): B T R -> B T D, in float32 at least."""

    def __init__(self, rank: int, channels: int) -> None:
        super().__init__(rank, channels)

    def initial(self, leaf: str) -> Distribution | None:
        """Step sizes near 0.01."""
        return STEPS if leaf == "bias" else None

    def forward(self, x: Tensor) -> Tensor:
        return F.softplus(wide(super().forward(x)))
