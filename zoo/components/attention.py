"""Attention over a sequence's own tokens, or over an encoder's.

Shapes: batch B, query length T, key length S, width D, heads H, key-value heads G, head width K.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

import specs.attention as spec
from zoo import functional
from zoo.components.linear import Linear
from zoo.components.position import Position
from zoo.context import BuildContext
from zoo.registry import builds

KeyValue = tuple[Tensor, Tensor]
"""Keys and values of one layer: B G S K each."""


@dataclass(frozen=True)
class Scope:
    """What the attentions of all layers of a stack share in one forward pass.

    positions: B T (or 1 T), bias and cross_bias: broadcast to B H T S, or None.
    """

    position: Position
    positions: Tensor
    bias: Tensor | None
    cross_bias: Tensor | None = None


def split_heads(x: Tensor, heads: int, width: int) -> Tensor:
    """B T (H K) -> B H T K."""
    return x.unflatten(-1, (heads, width)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """B H T K -> B T (H K)."""
    return x.transpose(1, 2).flatten(2)


class Projections(nn.Module):
    """The four projections of an attention, and the scores between them."""

    def __init__(self, spec: spec.MultiHeadShape, context: BuildContext) -> None:
        super().__init__()
        d_model, width = context.d_model, spec.head_width(context.d_model)
        self.heads, self.key_value_heads, self.width = spec.heads, spec.key_value_heads, width
        self.scale = width**-0.5 if spec.scale is None else spec.scale
        self.dropout = spec.dropout
        self.query = Linear(d_model, spec.heads * width, bias=spec.bias.query)
        self.key = Linear(d_model, spec.key_value_heads * width, bias=spec.bias.key)
        self.value = Linear(d_model, spec.key_value_heads * width, bias=spec.bias.value)
        self.output = Linear(spec.heads * width, d_model, bias=spec.bias.output)

    @property
    def cached(self) -> tuple[int, int, int]:
        """Heads, width of a key, and width of a value in the cache."""
        return self.key_value_heads, self.width, self.width

    def queries(self, x: Tensor) -> Tensor:
        """B T D -> B H T K."""
        return split_heads(self.query(x), self.heads, self.width)

    def keys_values(self, x: Tensor) -> KeyValue:
        """B S D -> B G S K twice."""
        key = split_heads(self.key(x), self.key_value_heads, self.width)
        value = split_heads(self.value(x), self.key_value_heads, self.width)
        return key, value

    def attend(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
        """B H T K, B G S K, B G S K -> B T D."""
        dropout = self.dropout if self.training else 0.0
        mixed = functional.attention(query, key, value, bias, scale=self.scale, dropout=dropout)  # B H T K
        return self.output(merge_heads(mixed))


@builds(spec.MultiHead, spec.GroupedQuery, spec.MultiQuery)
class SelfAttention(Projections):
    """Attention of a sequence to itself and to its past."""

    def forward(self, x: Tensor, scope: Scope, past: KeyValue | None) -> tuple[Tensor, KeyValue]:
        """x: B T D, past: B G P K twice -> B T D, and B G (P + T) K twice."""
        rotate, positions = scope.position.rotate, scope.positions
        key, value = self.keys_values(x)
        query, key = rotate(self.queries(x), positions, self.width), rotate(key, positions, self.width)
        if past is not None:
            key, value = functional.append(past[0], key), functional.append(past[1], value)
        return self.attend(query, key, value, scope.bias), (key, value)


class CrossAttention(Projections):
    """Attention of a decoder to the output of its encoder, which is projected once per sequence."""

    def forward(self, x: Tensor, scope: Scope, encoded: KeyValue) -> Tensor:
        """x: B T D, encoded: B G S K twice, from ``keys_values`` of the encoder's output -> B T D."""
        key, value = encoded
        return self.attend(self.queries(x), key, value, scope.cross_bias)
