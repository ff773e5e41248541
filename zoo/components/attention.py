"""Attention over a sequence's own tokens, or over an encoder's.

Shapes: batch B, query length T, key length S, width D, heads H, key-value heads G, head width K, width of a head's values V
(usually K).
"""

from __future__ import annotations

from torch import Tensor, nn

import specs.kinds.attention as spec
from zoo import functional
from zoo.components.linear import Linear
from zoo.components.mixer import LENGTH, AttentionMixer, MixerContext, State, StateTensor
from zoo.components.position import Position
from zoo.context import BuildContext
from zoo.core.sharding import COLUMNS, ROWS, Sharding, counted
from zoo.registry import builds

KeyValue = tuple[Tensor, Tensor]
"""Keys and values of one layer: B G S K and B G S V."""

KEY_BIASES = "key biases, which shift all scores of a query equally"
"""The biases that get no gradient."""


def key_value_state(heads: int, key: int, value: int) -> tuple[StateTensor, ...]:
    """The state of an attention: the keys and values of every token, for each of its heads."""
    return StateTensor("key", (heads, LENGTH, key)), StateTensor("value", (heads, LENGTH, value))


def split_heads(x: Tensor, width: int) -> Tensor:
    """B T (H K) -> B H T K."""
    return x.unflatten(-1, (-1, width)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """B H T K -> B T (H K)."""
    return x.transpose(1, 2).flatten(2)


class Projections(nn.Module):
    """The four projections of an attention, and the attention itself."""

    def __init__(self, spec: spec.MultiHeadShape, context: BuildContext) -> None:
        super().__init__()
        width, source = spec.head_width(context.d_model), self.source_width(context)
        self.heads, self.key_value_heads, self.width = spec.heads, spec.key_value_heads, width
        self.value_width = spec.value_width(context.d_model)
        self.scale = width**-0.5 if spec.scale is None else spec.scale
        self.dropout = spec.dropout
        self.query = Linear(context.reads, spec.heads * width, bias=spec.bias.query)
        self.key = Linear(source, spec.key_value_heads * width, bias=spec.bias.key)
        self.value = Linear(source, spec.key_value_heads * self.value_width, bias=spec.bias.value)
        self.output = Linear(spec.heads * self.value_width, context.d_model, bias=spec.bias.output)

    @staticmethod
    def source_width(context: BuildContext) -> int:
        """The width of the vectors that keys and values are projected from."""
        return context.reads

    @property
    def head_width(self) -> int:
        """Width of a head of queries and keys."""
        return self.width

    @property
    def rotated_width(self) -> int:
        """The width of queries and keys that the position rotates."""
        return self.width

    @property
    def state(self) -> tuple[StateTensor, ...]:
        """The keys and values of all tokens."""
        return key_value_state(self.key_value_heads, self.width, self.value_width)

    def sharding(self) -> Sharding:
        """By heads, with as many key-value heads per process."""
        return Sharding(
            {"query": COLUMNS, "key": COLUMNS, "value": COLUMNS, "output": ROWS},
            {"heads": self.heads, "kv_heads": self.key_value_heads},
            counted(heads=self.heads, key_value_heads=self.key_value_heads),
            last="output",
        )

    def without_gradient(self) -> dict[str, str]:
        """Key biases: softmax ignores them unless a position acts on keys."""
        return {"key.bias": KEY_BIASES}

    def queries(self, x: Tensor) -> Tensor:
        """B T D -> B H T K."""
        return split_heads(self.query(x), self.width)

    def keys(self, x: Tensor) -> Tensor:
        """B S D -> B G S K."""
        return split_heads(self.key(x), self.width)

    def values(self, x: Tensor) -> Tensor:
        """B S D -> B G S V."""
        return split_heads(self.value(x), self.value_width)

    def keys_values(self, x: Tensor) -> KeyValue:
        """B S D -> B G S K and B G S V."""
        return self.keys(x), self.values(x)

    def attend(self, x: Tensor, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
        """output(softmax(scale * query key^T + bias) value).  query: B H T K, key and value: B G S K, bias: broadcast to
        B H T S, x: what the queries were projected from, B T D -> B T D."""
        dropout = self.dropout if self.training else 0.0
        mixed = functional.attention(query, key, value, bias, scale=self.scale, dropout=dropout)  # B H T K
        return self.output(merge_heads(mixed))


@builds(spec.MultiHead, spec.GroupedQuery, spec.MultiQuery)
class SelfAttention(Projections, AttentionMixer):
    """Attention of a sequence to itself and to its past."""

    def forward(self, x: Tensor, context: MixerContext, past: State | None) -> tuple[Tensor, State]:
        """x: B T D, past: B G P K twice -> B T D, and all keys and values, B G S K twice with S = P + T."""
        position = context.attention.position_of(self)
        key, value = self.past_and_new(x, position, context, past)
        query = self.rotated_queries(x, position, context.positions)
        bias = self.score_bias(x, query, key, context)
        return self.attend(x, query, key, value, bias), (key, value)

    def rotated_queries(self, x: Tensor, position: Position, positions: Tensor) -> Tensor:
        """B T D -> B H T K."""
        return position.rotate_queries(self.queries(x), positions, self.width)

    def rotated_keys_values(self, x: Tensor, position: Position, positions: Tensor) -> KeyValue:
        """B T D -> B G T K twice."""
        key, value = self.keys_values(x)
        return position.rotate(key, positions, self.width), value

    def past_and_new(
        self, x: Tensor, position: Position, context: MixerContext, past: State | None
    ) -> KeyValue:
        """The cached keys and values and the new ones: B T D and B G P K twice -> B G S K twice."""
        return context.attention.cached(past, *self.rotated_keys_values(x, position, context.positions))

    def score_bias(self, x: Tensor, query: Tensor, key: Tensor, context: MixerContext) -> Tensor | None:
        """The mask, and what the position adds to the scores: broadcast to B H T S, or None."""
        return context.attention.score_bias(self, x, query, key)


class CrossAttention(Projections):
    """Attention of a decoder to the output of its encoder, which is projected once per sequence.

    The encoder's width E may differ from the decoder's.
    """

    @staticmethod
    def source_width(context: BuildContext) -> int:
        return context.encoder_width or context.reads

    def forward(self, x: Tensor, context: MixerContext, encoded: State) -> Tensor:
        """x: B T D, encoded: B G S K twice, from ``keys_values`` of the encoder's output, B S E -> B T D."""
        key, value = encoded
        return self.attend(x, self.queries(x), key, value, context.attention.cross_bias)
