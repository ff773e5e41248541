"""Attention over a sequence's own tokens, or over an encoder's.

Shapes: batch B, query length T, key length S, width D, heads H, key-value heads G, head width K.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

import specs.attention as spec
from zoo import functional
from zoo.components.linear import Linear
from zoo.components.norm import EachHead
from zoo.components.position import Position
from zoo.context import BuildContext
from zoo.initialization import Distribution
from zoo.registry import build_component, builds

KeyValue = tuple[Tensor, Tensor]
"""Keys and values of one layer: B G S K each."""


View = tuple[str, int | None]
"""What attentions with the same bias have in common: the name of the position that acts on their scores, and their window."""


@dataclass(frozen=True)
class Scope:
    """What the attentions of all layers of a stack share in one forward pass.

    positions: B T (or 1 T), biases and cross_bias: broadcast to B H T S, or None.  ``position`` is the stack's.
    start: B, the first of the places of a cache that new tokens get, where it does not grow.
    """

    position: Position
    positions: Tensor
    biases: Mapping[View, Tensor | None]
    cross_bias: Tensor | None = None
    start: Tensor | None = None

    @property
    def bias(self) -> Tensor | None:
        """The bias of an attention without a window or a position of its own."""
        return self.biases[self.position.name, None]

    def cached(self, past: KeyValue | None, key: Tensor, value: Tensor) -> KeyValue:
        """New keys and values, B G T K, with those of earlier tokens: B G S K."""
        if past is None:
            return key, value
        if self.start is None:
            return functional.append(past[0], key), functional.append(past[1], value)
        return functional.write(past[0], key, self.start), functional.write(past[1], value, self.start)


def split_heads(x: Tensor, heads: int, width: int) -> Tensor:
    """B T (H K) -> B H T K."""
    return x.unflatten(-1, (heads, width)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """B H T K -> B T (H K)."""
    return x.transpose(1, 2).flatten(2)


def query_key_norm(spec: spec.QKNorm | None, heads: int, width: int, context: BuildContext) -> nn.Module:
    """The norm of queries or of keys of some heads: of B T (H K) over ``width``, else of B T H K."""
    if spec is None:
        return nn.Identity()
    if spec.over == "width":
        return build_component(spec.norm, replace(context, d_model=heads * width))
    context = replace(context, d_model=width)
    return (
        EachHead(spec.norm, heads, context)
        if spec.over == "each_head"
        else build_component(spec.norm, context)
    )


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
        self.clip, self.softcap = spec.clip, spec.softcap
        self.norm_over = None if spec.qk_norm is None else spec.qk_norm.over
        self.query_norm = query_key_norm(spec.qk_norm, spec.heads, width, context)
        self.key_norm = query_key_norm(spec.qk_norm, spec.key_value_heads, width, context)
        self.sinks = nn.Parameter(torch.empty(spec.heads)) if spec.sinks else None  # H

    def initial(self, leaf: str) -> Distribution:
        """A sink weighs as much as a key whose score is 0."""
        return Distribution(constant=0.0)

    @property
    def rotated_width(self) -> int:
        """The width of the queries and keys that its position rotates."""
        return self.width

    @property
    def cached(self) -> tuple[int, int, int]:
        """Heads, width of a key, and width of a value in the cache."""
        return self.key_value_heads, self.width, self.width

    def queries(self, x: Tensor) -> Tensor:
        """B T D -> B H T K."""
        return self._heads(self._clipped(self.query(x)), self.heads, self.query_norm)

    def keys_values(self, x: Tensor) -> KeyValue:
        """B S D -> B G S K twice."""
        key = self._heads(self._clipped(self.key(x)), self.key_value_heads, self.key_norm)
        value = split_heads(self._clipped(self.value(x)), self.key_value_heads, self.width)
        return key, value

    def _clipped(self, x: Tensor) -> Tensor:
        return x if self.clip is None else x.clamp(-self.clip, self.clip)

    def _heads(self, x: Tensor, heads: int, norm: nn.Module) -> Tensor:
        """Norm and split queries or keys: B T (H K) -> B H T K."""
        if self.norm_over == "width":
            return split_heads(norm(x), heads, self.width)
        return norm(x.unflatten(-1, (heads, self.width))).transpose(1, 2)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
        """B H T K, B G S K, B G S K -> B T D."""
        mixed = functional.attention(
            query,
            key,
            value,
            bias,
            scale=self.scale,
            dropout=self.dropout if self.training else 0.0,
            softcap=self.softcap,
            sinks=self.sinks,
        )  # B H T K
        return self.output(merge_heads(mixed))


@builds(spec.MultiHead, spec.GroupedQuery, spec.MultiQuery)
class SelfAttention(Projections):
    """Attention of a sequence to itself and to its past.

    ``position`` is its own, which it may share with other layers, or None for the stack's.
    """

    def __init__(self, spec: spec.MultiHeadShape, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.window = spec.window
        self.position = context.position

    def forward(self, x: Tensor, scope: Scope, past: KeyValue | None) -> tuple[Tensor, KeyValue]:
        """x: B T D, past: B G P K twice -> B T D, and the keys and values so far, B G S K twice."""
        position, positions = self.position or scope.position, scope.positions
        rotate = position.rotate
        key, value = self.keys_values(x)
        query, key = rotate(self.queries(x), positions, self.width), rotate(key, positions, self.width)
        key, value = scope.cached(past, key, value)
        return self.attend(query, key, value, scope.biases[position.name, self.window]), (key, value)


class CrossAttention(Projections):
    """Attention of a decoder to the output of its encoder, which is projected once per sequence."""

    def forward(self, x: Tensor, scope: Scope, encoded: KeyValue) -> Tensor:
        """x: B T D, encoded: B G S K twice, from ``keys_values`` of the encoder's output -> B T D."""
        key, value = encoded
        return self.attend(self.queries(x), key, value, scope.cross_bias)
