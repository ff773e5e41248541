"""Multi-head latent attention (DeepSeek-V2): queries, keys and values come from low-rank latents.

Shapes: batch B, query length T, key length S, width D, heads H, rotated width R, width of a head N, of a value V, rank C.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

import specs.kinds.latent as spec
from zoo import functional
from zoo.components.attention import key_value_state, merge_heads, split_heads
from zoo.components.linear import Linear
from zoo.components.mixer import AttentionMixer, MixerContext, State, StateTensor
from zoo.components.output_gate import gate_projection, gated
from zoo.context import BuildContext
from zoo.core.sharding import COLUMNS, HEADS, READ_BY_ALL, ROWS, SHARED, Sharding, counted
from zoo.registry import build_component, builds


@builds(spec.Latent)
class Latent(AttentionMixer):
    """Heads have an unrotated and a rotated part; the cache holds both parts of the keys, and the values, of every head."""

    def __init__(self, spec: spec.Latent, context: BuildContext) -> None:
        super().__init__()
        d_model, heads = context.d_model, spec.heads
        self.heads, self.kv_rank = heads, spec.kv_rank
        self.unrotated, self.rotated, self.value_dim = spec.head_dim, spec.rope_dim, spec.value_dim
        width = spec.head_dim + spec.rope_dim
        self.scale = width**-0.5 if spec.scale is None else spec.scale
        self.dropout = spec.dropout
        self.low_rank = spec.query_rank is not None
        if spec.query_rank is None:
            self.query = Linear(d_model, heads * width, bias=False)
        else:
            self.query_down = Linear(d_model, spec.query_rank, bias=spec.bias)
            self.query_norm = build_component(spec.norm, replace(context, d_model=spec.query_rank))
            self.query_up = Linear(spec.query_rank, heads * width, bias=False)
        self.key_value_down = Linear(d_model, spec.kv_rank + spec.rope_dim, bias=spec.bias)
        self.key_value_norm = build_component(spec.norm, replace(context, d_model=spec.kv_rank))
        self.key_value_up = Linear(spec.kv_rank, heads * (spec.head_dim + spec.value_dim), bias=False)
        self.output = Linear(heads * spec.value_dim, d_model, bias=spec.bias)
        self.output_gate = spec.output_gate
        self.gate = gate_projection(spec.output_gate, d_model, heads, spec.value_dim)

    @property
    def rotated_width(self) -> int:
        """The width of the part of queries and keys that the position rotates."""
        return self.rotated

    @property
    def latent_width(self) -> int:
        return self.kv_rank + self.rotated

    @property
    def state(self) -> tuple[StateTensor, ...]:
        """The keys and values of all tokens, for every head."""
        return key_value_state(self.heads, self.unrotated + self.rotated, self.value_dim)

    def sharding(self) -> Sharding:
        """By heads; every process computes the latents."""
        cuts = {
            "query": COLUMNS,
            "query_up": COLUMNS,
            "key_value_down": READ_BY_ALL,
            "key_value_norm": SHARED,
            "key_value_up": HEADS,
            "output": ROWS,
            "gate": COLUMNS,
        }
        return Sharding(cuts, {"heads": self.heads}, counted(heads=self.heads), last="output")

    def forward(self, x: Tensor, context: MixerContext, past: State | None) -> tuple[Tensor, State]:
        """x: B T D, past: B H P (N + R) and B H P V -> B T D, and all keys and values: B H S (N + R) and B H S V."""
        shared, positions = context.attention, context.positions
        position = shared.position_of(self)
        query = self.query_up(self.query_norm(self.query_down(x))) if self.low_rank else self.query(x)
        query = split_heads(query, self.unrotated + self.rotated)  # B H T (N + R)
        turned = position.rotate(query[..., self.unrotated :], positions, self.rotated)  # B H T R
        query = position.scale_queries(torch.cat((query[..., : self.unrotated], turned), -1), positions)
        down = self.key_value_down(x)  # B T (C + R)
        latent, common = self.key_value_norm(down[..., : self.kv_rank]), down[..., self.kv_rank :]
        up = split_heads(self.key_value_up(latent), self.unrotated + self.value_dim)  # B H T (N + V)
        common = position.rotate(common[:, None], positions, self.rotated)  # B 1 T R
        key = torch.cat((up[..., : self.unrotated], common.expand(-1, self.heads, -1, -1)), -1)
        key, value = shared.cached(past, key, up[..., self.unrotated :])
        bias = shared.biases[self.bias_key(position)]
        dropout = self.dropout if self.training else 0.0
        mixed = functional.attention(query, key, value, bias, scale=self.scale, dropout=dropout)  # B H T V
        merged = merge_heads(mixed)
        if self.output_gate is not None and self.gate is not None:
            merged = gated(merged, self.output_gate, self.gate(x), self.value_dim)
        return self.output(merged), (key, value)
