"""Mamba: channels whose states decay at rates that the input selects.

Shapes: batch B, tokens T, channels D, heads H, channels of a head K, states of a channel N, rank of the step sizes R, kernel
width W.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import specs.kinds.mamba as spec
from zoo import functional
from zoo.components.activation import activation
from zoo.components.block_linear import BlockLinear
from zoo.components.causal_convolution import CausalConvolution
from zoo.components.decay import RATES, step_biases
from zoo.components.linear import Linear
from zoo.components.mixer import Mixer, MixerContext, State, StateTensor
from zoo.context import BuildContext
from zoo.core.initialization import Distribution
from zoo.core.precision import wide
from zoo.core.sharding import HEADS, ROWS, SHARED, SUMMED, Cut, Section, Sharding, counted
from zoo.registry import build_component, builds


@builds(spec.Mamba)
class Mamba(Mixer):
    """output((c h + skip * x) * silu(gate)), where h_t = exp(step * a) h_(t-1) + step * b x are a channel's states."""

    def __init__(self, spec: spec.Mamba, context: BuildContext) -> None:
        super().__init__()
        self.width, self.states, self.rank = spec.width, spec.state_size, spec.step_rank
        self.input = Linear(context.d_model, 2 * spec.width, bias=spec.bias)
        self.convolution = CausalConvolution(spec.width, spec.kernel_size, bias=spec.convolution_bias)
        self.activation = activation(spec.activation)
        self.heads, selected = spec.heads, spec.step_rank + 2 * spec.state_size
        self.by_head = spec.heads > 1  # also where a process has a single one of them
        self.selection: nn.Module
        self.step: nn.Module
        if self.by_head:
            channels = spec.width // spec.heads
            self.selection = BlockLinear(spec.heads, channels, selected, bias=False)
            self.step = StepSizeOfHeads(spec.heads, spec.step_rank, channels)
        else:
            self.selection = Linear(spec.width, selected, bias=False)
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
        """By channels, and every process has the step sizes' latents, b and c; or by heads."""
        width, heads = self.width, self.heads
        cuts = {
            "input": Cut("columns", (Section(width), Section(width))),
            "convolution": HEADS,
            "activation": SHARED,
            "selection": HEADS if self.by_head else SUMMED,
            "step": HEADS,
            **dict.fromkeys(("step_norm", "b_norm", "c_norm"), SHARED),
            **dict.fromkeys(("rate_log", "skip"), HEADS),
            "output": ROWS,
        }
        divided = {"width": width, "convolution.channels": width}
        if not self.by_head:
            return Sharding(cuts, {"width": width}, counted(**divided), last="output")
        divided |= dict.fromkeys(("heads", "selection.heads", "step.heads"), heads)
        return Sharding(cuts, {"heads": heads}, counted(**divided), last="output")

    def forward(self, x: Tensor, context: MixerContext, past: State | None) -> tuple[Tensor, State]:
        """x: B T and d_model, past: B D (W - 1) and B D N -> B T and d_model, and the same state."""
        last_inputs, states = (None, None) if past is None else past
        x, gate = self.input(x).chunk(2, -1)  # B T D each
        x, last_inputs = self.convolution(x, context, last_inputs)
        x = self.activation(x)
        mixed, states = self._scan(x, states, context.real)
        mixed = (mixed + wide(x) * wide(self.skip)) * F.silu(wide(gate))
        return self.output(mixed), (last_inputs, states)

    def _scan(self, x: Tensor, states: Tensor | None, real: Tensor | None) -> tuple[Tensor, Tensor]:
        """The output of the states, before the skip: B T D, B D N -> B T D and B D N."""
        selected = self.selection(x)
        if self.by_head:
            selected = selected.unflatten(-1, (self.heads, -1))  # B T H (R + 2 N)
        step, b, c = selected.split((self.rank, self.states, self.states), -1)  # B T R, B T N twice
        if self.step_norm is not None:
            step, b, c = self.step_norm(step), self.b_norm(b), self.c_norm(c)  # type: ignore[misc]
        x, rates = wide(x), -wide(self.rate_log).exp()  # D N
        if not self.by_head:
            return functional.selective_scan(x, self.step(step), rates, b, c, states, real)
        count = self.heads
        before = [None] * count if states is None else [*states.chunk(count, 1)]
        of_heads = zip(
            x.chunk(count, -1), self.step(step).chunk(count, -1), rates.chunk(count, 0), before, strict=True
        )
        scans = [
            functional.selective_scan(part, steps, slopes, b[:, :, head], c[:, :, head], past, real)
            for head, (part, steps, slopes, past) in enumerate(of_heads)
        ]  # B T K and B K N for each head
        mixed, after = zip(*scans, strict=True)
        return torch.cat(mixed, -1), torch.cat(after, 1)


class StepSizeOfHeads(BlockLinear):
    """softplus(weight x + bias) for each head: B T H R -> B T (H K), in float32 at least."""

    def initial(self, leaf: str) -> Distribution | None:
        """Step sizes near 0.01."""
        return step_biases() if leaf == "bias" else None

    def forward(self, x: Tensor) -> Tensor:
        return F.softplus(wide(self.of_blocks(x)))


class StepSize(Linear):
    """softplus(weight x + bias): B T R -> B T D, in float32 at least."""

    def __init__(self, rank: int, channels: int) -> None:
        super().__init__(rank, channels)

    def initial(self, leaf: str) -> Distribution | None:
        """Step sizes near 0.01."""
        return step_biases() if leaf == "bias" else None

    def forward(self, x: Tensor) -> Tensor:
        return F.softplus(wide(super().forward(x)))
