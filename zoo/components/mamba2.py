"""Mamba-2: heads whose state decays by one factor per token.

Shapes: batch B, tokens T, heads H, their width P, groups of heads G, state width N, width of all heads D = H P.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import specs.kinds.mamba2 as spec
from zoo import functional
from zoo.components.activation import activation
from zoo.components.causal_convolution import CausalConvolution
from zoo.components.decay import RATES, step_biases
from zoo.components.gated_norm import Gate, GatedRMSNorm
from zoo.components.linear import Linear
from zoo.components.mixer import Mixer, MixerContext, State, StateTensor
from zoo.components.scaling import scaled
from zoo.context import BuildContext
from zoo.core.initialization import Distribution
from zoo.core.precision import wide
from zoo.core.sharding import GATHERED, HEADS, ROWS, SHARED, Cut, Section, Sharding, counted
from zoo.registry import builds


@builds(spec.Mamba2)
class Mamba2(Mixer):
    """output(norm(S^T c + skip * x, gate)), where S is the state of a head: S_t = exp(step * a) S_(t-1) + step * b x^T."""

    def __init__(self, spec: spec.Mamba2, context: BuildContext) -> None:
        super().__init__()
        self.heads, self.head_dim, self.groups = spec.heads, spec.head_dim, spec.groups
        self.state_size, self.limit = spec.state_size, spec.step_limit
        self.multipliers = spec.multipliers
        self.keys = spec.groups * spec.state_size
        convolved = spec.width + 2 * self.keys
        self.input = Linear(context.d_model, spec.width + convolved + spec.heads, bias=spec.bias)
        self.convolution = CausalConvolution(convolved, spec.kernel_size, bias=spec.convolution_bias)
        self.activation = activation(spec.activation)
        self.step_bias = nn.Parameter(torch.empty(spec.heads))
        self.rate_log = nn.Parameter(torch.empty(spec.heads))
        self.skip = nn.Parameter(torch.empty(spec.heads))
        self.norm = Gate() if spec.norm is None else _norm(spec.norm, spec)
        self.output = Linear(spec.width, context.d_model, bias=spec.bias)

    def initial(self, leaf: str) -> Distribution | None:
        """Rates of decay between 1/16 and 16, and step sizes near 0.01 or between their bounds."""
        limit = self.limit
        bounds = () if limit is None else (limit.least, math.inf if limit.most is None else limit.most)
        return {"step_bias": step_biases(*bounds), "rate_log": RATES}.get(leaf)

    @property
    def state(self) -> tuple[StateTensor, ...]:
        """The last inputs of the convolution, and a matrix per head."""
        states = (self.heads, self.state_size, self.head_dim)
        return self.convolution.state, StateTensor("ssm", states, torch.float32)

    @property
    def parts(self) -> tuple[int, int, int]:
        """The widths of values, keys and queries."""
        return self.heads * self.head_dim, self.keys, self.keys

    def sharding(self) -> Sharding:
        """By heads, with as many groups per process; a single group is every process's."""
        width, keys = Section(self.heads * self.head_dim), Section(self.keys, cut=self.groups > 1)
        convolved = (width, keys, keys)
        cuts = {
            "input": Cut("columns", (width, *convolved, Section(self.heads))),
            "convolution": Cut("heads", convolved),
            "activation": SHARED,
            **dict.fromkeys(("step_bias", "rate_log", "skip"), HEADS),
            "norm": HEADS if self.groups > 1 else GATHERED,
            "output": ROWS,
        }
        counts, divided = {"heads": self.heads}, {"keys": (keys,), "convolution.channels": convolved}
        if self.groups > 1:
            counts["groups"], divided["groups"] = self.groups, (Section(self.groups),)
            divided |= {} if isinstance(self.norm, Gate) else {"norm.groups": divided["groups"]}
        return Sharding(cuts, counts, divided | counted(heads=self.heads), last="output")

    def forward(self, x: Tensor, context: MixerContext, past: State | None) -> tuple[Tensor, State]:
        """x: B T and d_model, past: B (D + 2 G N) (W - 1) and B H N P -> B T and d_model, and the same state."""
        last_inputs, states = (None, None) if past is None else past
        factors = self.multipliers
        x = self.input(scaled(x, factors.input))  # B T (2 D + 2 G N + H)
        width, *keys = self.parts
        gate, x, step = x.split((width, width + sum(keys), self.heads), -1)  # B T D, B T (D + 2 G N), B T H
        gate, x, step = scaled(gate, factors.gate), self._scaled_parts(x), scaled(step, factors.step)
        x, last_inputs = self.convolution(x, context, last_inputs)
        x, key, query = self.activation(x).split(self.parts, -1)
        heads = wide(x).unflatten(-1, (-1, self.head_dim))  # B T H P
        key, query = (
            part.unflatten(-1, (self.groups, -1)).transpose(1, 2) for part in (key, query)
        )  # B G T N
        step = self._step(step)  # B T H
        decay = step * -wide(self.rate_log).exp()
        mixed, states = functional.linear_attention(
            query, key, (heads * step[..., None]).transpose(1, 2), decay.transpose(1, 2), states, context.real
        )
        mixed = mixed.transpose(1, 2) + heads * wide(self.skip)[:, None]  # B T H P
        x = scaled(self.output(self.norm(mixed.flatten(2), gate)), factors.output)
        return x, (last_inputs, states)

    def _scaled_parts(self, x: Tensor) -> Tensor:
        """Values, keys and queries times their factors: B T (D + 2 G N), the same."""
        factors = (self.multipliers.value, self.multipliers.key, self.multipliers.query)
        if set(factors) == {1.0}:
            return x
        return torch.cat([*map(scaled, x.split(self.parts, -1), factors)], -1)

    def _step(self, x: Tensor) -> Tensor:
        """The size of each step, in float32 at least: ... H -> ... H."""
        step = F.softplus(wide(x) + wide(self.step_bias))
        return step if self.limit is None else step.clamp(self.limit.least, self.limit.most)


def _norm(norm: spec.GatedNorm, mixer: spec.Mamba2) -> GatedRMSNorm:
    return GatedRMSNorm(mixer.width, norm.eps, groups=mixer.groups, gates_first=norm.gate == "before")
