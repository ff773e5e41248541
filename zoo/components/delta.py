"""Mixers with gated delta rules: a short convolution, a state per head, and a gated norm.

Shapes: batch B, tokens T, key heads G, heads H, key width K, value width V, kernel width W.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import specs.kinds.delta as spec
from zoo import functional
from zoo.components.activation import activation
from zoo.components.attention import split_heads
from zoo.components.causal_convolution import CausalConvolution
from zoo.components.decay import RATES
from zoo.components.gated_norm import GatedRMSNorm
from zoo.components.linear import Linear
from zoo.components.mixer import Mixer, MixerContext, State, StateTensor
from zoo.context import BuildContext
from zoo.core.initialization import Distribution
from zoo.core.precision import in_dtype, wide
from zoo.core.sharding import COLUMNS, HEADS, ROWS, SHARED, Cut, Section, Sharding, counted
from zoo.registry import builds

EPS = 1e-6
"""The number added to the squared length of queries and keys."""


def initial_gate(leaf: str) -> Distribution | None:
    """Rates of decay between 1/16 and 16, and biases of 1."""
    return {"step_bias": Distribution(constant=1.0), "rate_log": RATES}.get(leaf)


@builds(spec.GatedDeltaNet)
class GatedDeltaNet(Mixer):
    """output(norm(delta_rule(activation(conv(input(x))), decay, update), gate)), with one decay per head and token."""

    def __init__(self, spec: spec.GatedDeltaNet, context: BuildContext) -> None:
        super().__init__()
        d_model, keys, values = (
            context.d_model,
            spec.key_heads * spec.key_width,
            spec.heads * spec.value_width,
        )
        self.heads, self.key_heads = spec.heads, spec.key_heads
        self.key_width, self.value_width = spec.key_width, spec.value_width
        self.update_bound = 2.0 if spec.negative_eigenvalues else 1.0
        self.input = Linear(d_model, 2 * keys + values, bias=False)
        self.gate = Linear(d_model, values, bias=False)
        self.update = Linear(d_model, spec.heads, bias=False)
        self.decay = Linear(d_model, spec.heads, bias=False)
        self.convolution = CausalConvolution(2 * keys + values, spec.kernel_size, bias=False)
        self.activation = activation(spec.activation)
        self.step_bias = nn.Parameter(torch.empty(spec.heads))
        self.rate_log = nn.Parameter(torch.empty(spec.heads))
        self.norm = GatedRMSNorm(spec.value_width, spec.norm_eps, F.silu)
        self.output = Linear(values, d_model, bias=False)

    def initial(self, leaf: str) -> Distribution | None:
        """Those of the gates."""
        return initial_gate(leaf)

    @property
    def state(self) -> tuple[StateTensor, ...]:
        """The last inputs of the convolution, and a matrix per head."""
        states = (self.heads, self.key_width, self.value_width)
        return self.convolution.state, StateTensor("recurrent", states, torch.float32)

    @property
    def parts(self) -> tuple[int, int, int]:
        """The widths of queries, keys and values."""
        keys = self.key_heads * self.key_width
        return keys, keys, self.heads * self.value_width

    def sharding(self) -> Sharding:
        """By heads, with as many key heads per process."""
        joined = tuple(map(Section, self.parts))
        cuts = {
            "input": Cut("columns", joined),
            **dict.fromkeys(("gate", "update", "decay"), COLUMNS),
            "convolution": Cut("heads", joined),
            **dict.fromkeys(("step_bias", "rate_log"), HEADS),
            "activation": SHARED,
            "norm": SHARED,
            "output": ROWS,
        }
        divided = counted(heads=self.heads, key_heads=self.key_heads) | {"convolution.channels": joined}
        return Sharding(cuts, {"heads": self.heads, "key_heads": self.key_heads}, divided, last="output")

    def forward(self, x: Tensor, context: MixerContext, past: State | None) -> tuple[Tensor, State]:
        """x: B T D, past: B (2 G K + H V) (W - 1) and B H K V -> B T D, and the same state."""
        last_inputs, states = (None, None) if past is None else past
        joined, last_inputs = self.convolution(self.input(x), context, last_inputs)
        query, key, value = self.activation(joined).split(self.parts, -1)
        query, key = (
            functional.unit_length(part.unflatten(-1, (-1, self.key_width)), EPS).transpose(1, 2)
            for part in (query, key)
        )  # B G T K
        value = split_heads(value, self.value_width)  # B H T V
        rate = wide(self.rate_log).exp()  # H
        decay = -rate * F.softplus(wide(self.decay(x)) + wide(self.step_bias))  # B T H
        update = self.update_bound * torch.sigmoid(self.update(x))  # B T H
        mixed, states = functional.gated_delta_rule(
            query * self.key_width**-0.5,
            key,
            value,
            decay.transpose(1, 2),
            update.transpose(1, 2),
            states,
            context.real,
        )  # B H T V
        gate = self.gate(x).unflatten(-1, (-1, self.value_width))  # B T H V
        return self.output(self.norm(mixed.transpose(1, 2), gate).flatten(2)), (last_inputs, states)


@builds(spec.KimiDeltaAttention)
class KimiDeltaAttention(Mixer):
    """output(norm(delta_rule(activation(conv(query, key, value)), decay, update), gate)), with a decay per key channel and token."""

    def __init__(self, spec: spec.KimiDeltaAttention, context: BuildContext) -> None:
        super().__init__()
        d_model, narrow, width = context.d_model, spec.head_dim, spec.heads * spec.head_dim
        self.heads, self.head_dim = spec.heads, spec.head_dim
        self.query, self.key, self.value = (Linear(d_model, width, bias=False) for _ in range(3))
        self.query_kernel, self.key_kernel, self.value_kernel = (
            nn.Parameter(torch.empty(width, spec.kernel_size)) for _ in range(3)
        )  # (H K) W each
        self.low_rank, self.decay_bound = spec.low_rank, spec.decay_bound
        first = narrow if spec.low_rank else width
        self.decay_in, self.gate_in = (Linear(d_model, first, bias=False) for _ in range(2))
        if spec.low_rank:
            self.decay_out, self.gate_out = (Linear(narrow, width, bias=False) for _ in range(2))
        self.update = Linear(d_model, spec.heads, bias=False)
        self.activation = activation(spec.activation)
        self.step_bias = nn.Parameter(torch.empty(width))
        self.rate_log = nn.Parameter(torch.empty(spec.heads))
        self.norm = GatedRMSNorm(spec.head_dim, spec.norm_eps, torch.sigmoid)
        self.output = Linear(width, d_model, bias=False)

    def initial(self, leaf: str) -> Distribution | None:
        """Those of the gates, and kernels uniform as in ``torch.nn.Conv1d``."""
        kernel = leaf.endswith("_kernel")
        return Distribution(bound=self.query_kernel.shape[1] ** -0.5) if kernel else initial_gate(leaf)

    @property
    def state(self) -> tuple[StateTensor, ...]:
        """The last queries, keys and values before the convolution, and a matrix per head."""
        width, kernel = self.heads * self.head_dim, self.query_kernel.shape[1]
        states = (self.heads, self.head_dim, self.head_dim)
        return StateTensor("conv", (3 * width, kernel - 1)), StateTensor("recurrent", states, torch.float32)

    def sharding(self) -> Sharding:
        """By heads."""
        last = ("decay_out", "gate_out") if self.low_rank else ("decay_in", "gate_in")
        cuts = dict.fromkeys(("query", "key", "value", *last, "update"), COLUMNS)
        kernels = ("query_kernel", "key_kernel", "value_kernel")
        cuts |= dict.fromkeys((*kernels, "step_bias", "rate_log"), HEADS)
        cuts |= {"activation": SHARED, "norm": SHARED, "output": ROWS}
        return Sharding(cuts, {"heads": self.heads}, counted(heads=self.heads), last="output")

    def forward(self, x: Tensor, context: MixerContext, past: State | None) -> tuple[Tensor, State]:
        """x: B T D, past: B (3 H K) (W - 1) and B H K K -> B T D, and the same state."""
        last_inputs, states = (None, None) if past is None else past
        kernel = torch.cat((self.query_kernel, self.key_kernel, self.value_kernel))  # (3 H K) W
        projected = torch.cat((self.query(x), self.key(x), self.value(x)), -1)
        joined, last_inputs = functional.causal_convolution(
            in_dtype(projected, kernel.dtype), kernel, None, last_inputs, context.alignment(kernel.shape[1])
        )
        query, key, value = (
            part.unflatten(-1, (-1, self.head_dim)) for part in self.activation(joined).chunk(3, -1)
        )  # B T H K
        query, key, value = (
            part.transpose(1, 2)
            for part in (
                functional.unit_length(query, EPS) * self.head_dim**-0.5,
                functional.unit_length(key, EPS),
                value,
            )
        )  # B H T K
        update = torch.sigmoid(self.update(x)).transpose(1, 2)  # B H T
        mixed, states = functional.gated_delta_rule(
            query, key, value, self._decay(x), update, states, context.real
        )  # B H T K
        gate = self.gate_in(x)
        gate = (self.gate_out(gate) if self.low_rank else gate).unflatten(-1, (-1, self.head_dim))  # B T H K
        return self.output(self.norm(mixed.transpose(1, 2), gate).flatten(2)), (last_inputs, states)

    def _decay(self, x: Tensor) -> Tensor:
        """The logarithm of the decay: B T D -> B H T K, in float32 at least."""
        steps = self.decay_in(x)
        steps = wide(self.decay_out(steps) if self.low_rank else steps) + wide(self.step_bias)  # B T (H K)
        rates = wide(self.rate_log).exp()[:, None, None]  # H 1 1
        if self.decay_bound is not None:
            return torch.sigmoid(split_heads(steps, self.head_dim) * rates) * -self.decay_bound
        return split_heads(F.softplus(steps), self.head_dim) * -rates
