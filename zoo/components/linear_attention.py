"""Linear attention: heads whose state decays at a fixed rate.

Shapes: batch B, tokens T, width D, heads H, key width K, value width V.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

import specs.kinds.linear_attention as spec
from zoo import functional
from zoo.components.activation import activation
from zoo.components.attention import split_heads
from zoo.components.decay import log_decays
from zoo.components.linear import Linear
from zoo.components.mixer import Mixer, MixerContext, State, StateTensor
from zoo.context import LayerContext
from zoo.core.precision import wide
from zoo.core.sharding import COLUMNS, GATHERED, ROWS, SHARED, Sharding, counted
from zoo.registry import build_component, builds


@builds(spec.LinearAttention)
class LinearAttention(Mixer):
    """output(norm(S^T query) * activation(gate)), where S is the state of a head: S_t = decay S_(t-1) + key value^T."""

    def __init__(self, spec: spec.LinearAttention, context: LayerContext) -> None:
        super().__init__()
        d_model, keys, values = (
            context.d_model,
            spec.heads * spec.key_width,
            spec.heads * spec.value_width,
        )
        self.heads, self.key_width, self.value_width = spec.heads, spec.key_width, spec.value_width
        self.log_decays = log_decays(spec.decay, spec.heads, context.layer, context.layers)
        self.query, self.key = (Linear(d_model, keys, bias=False) for _ in range(2))
        self.value, self.gate = (Linear(d_model, values, bias=False) for _ in range(2))
        self.activation, self.gate_activation = activation(spec.activation), activation(spec.gate)
        self.norm_per_head = spec.output_norm.over == "head"
        normed = spec.value_width if self.norm_per_head else values
        self.norm = build_component(spec.output_norm.norm, replace(context, d_model=normed))
        self.output = Linear(values, d_model, bias=False)

    @property
    def state(self) -> tuple[StateTensor, ...]:
        """A matrix per head."""
        return (StateTensor("recurrent", (self.heads, self.key_width, self.value_width), torch.float32),)

    def sharding(self) -> Sharding:
        """By heads."""
        cuts = dict.fromkeys(("query", "key", "value", "gate"), COLUMNS)
        cuts |= dict.fromkeys(("activation", "gate_activation"), SHARED)
        cuts |= {"norm": SHARED if self.norm_per_head else GATHERED, "output": ROWS}
        divided = counted(heads=self.heads, log_decays=self.heads)
        return Sharding(cuts, {"heads": self.heads}, divided, last="output")

    def forward(self, x: Tensor, context: MixerContext, past: State | None) -> tuple[Tensor, State]:
        """x: B T D, past: B H K V -> B T D, and the same state."""
        (states,) = (None,) if past is None else past
        query, key = (
            split_heads(self.activation(project(x)), self.key_width) for project in (self.query, self.key)
        )  # B H T K
        value = split_heads(self.activation(self.value(x)), self.value_width)  # B H T V
        decay = functional.constant(self.log_decays, x)[None, :, None]  # 1 H 1
        mixed, states = functional.linear_attention(
            query, key, wide(value), decay.expand(x.shape[0], -1, x.shape[1]), states, context.real
        )
        mixed = mixed.transpose(1, 2)  # B T H V
        normed = self.norm(mixed).flatten(2) if self.norm_per_head else self.norm(mixed.flatten(2))
        return self.output(normed * self.gate_activation(self.gate(x))), (states,)
