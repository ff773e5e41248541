"""Two streams whose attentions add their scores to each other's (LiLT: Wang et al., 2022).

They are side by side in the vectors that layers pass on. Shapes: batch B, tokens T, heads H, widths of the streams D and W, widths of their
heads K and L.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

import specs.kinds.two_streams as spec
from specs.kinds.attention import MultiHead
from zoo import functional
from zoo.components.attention import (
    KEY_BIASES,
    SelfAttention,
    key_value_state,
    merge_heads,
    split_heads,
)
from zoo.components.block import Block, LayerCall
from zoo.components.linear import Linear
from zoo.components.mixer import MixerContext, State, StateTensor
from zoo.context import LayerContext
from zoo.core.sharding import COLUMNS, ROWS, Sharding
from zoo.registry import build_component, builds


class SecondStream(nn.Module):
    """The queries, keys and values of the second stream, B T W -> B H T L each, and the projection of its output."""

    component_kind = "second_stream"
    stream_methods: ClassVar = {"projected": "Attention of the second stream"}

    def __init__(self, spec: MultiHead, context: LayerContext) -> None:
        super().__init__()
        width = context.d_model
        self.heads, self.head_width = spec.heads, width // spec.heads
        self.scale = self.head_width**-0.5 if spec.scale is None else spec.scale
        self.query = Linear(width, width, bias=spec.bias.query)
        self.key = Linear(width, width, bias=spec.bias.key)
        self.value = Linear(width, width, bias=spec.bias.value)
        self.output = Linear(width, width, bias=spec.bias.output)

    def sharding(self) -> Sharding:
        """By heads."""
        return Sharding(
            {"query": COLUMNS, "key": COLUMNS, "value": COLUMNS, "output": ROWS}, {"heads": self.heads}
        )

    def without_gradient(self) -> dict[str, str]:
        """Key biases."""
        return {"key.bias": KEY_BIASES}

    def forward(self, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = self.query(y), self.key(y), self.value(y)
        return (
            split_heads(query, self.head_width),
            split_heads(key, self.head_width),
            split_heads(value, self.head_width),
        )

    def projected(self, mixed: Tensor) -> Tensor:
        """Returns the output of the second stream, B T W, of the mixed values of its heads."""
        return cast(Tensor, self.output(mixed))


class TwoStreamAttention(SelfAttention):
    """One attention of heads of width K + L, with the queries, keys and values of both streams side by side."""

    def __init__(self, spec: MultiHead, context: LayerContext, second: LayerContext) -> None:
        super().__init__(spec, context)
        self.first_width = context.d_model
        self.second = SecondStream(spec, second)

    @property
    def state(self) -> tuple[StateTensor, ...]:
        width = self.width + self.second.head_width
        return key_value_state(self.key_value_heads, width, width)

    def forward(self, x: Tensor, context: MixerContext, past: State | None) -> tuple[Tensor, State]:
        """x: B T (D + W) -> B T (D + W), the second stream before its projection, and all keys and values, B H T (K + L) twice."""
        position, first = context.attention.position_of(self), x[..., : self.first_width]
        query = self.rotated_queries(first, position, context.positions)
        key, value = self.rotated_keys_values(first, position, context.positions)
        bias = self.score_bias(first, query, key, context)
        second = self.second(x[..., self.first_width :])
        query = torch.cat((query, second[0] * (self.second.scale / self.scale)), -1)
        key, value = torch.cat((key, second[1]), -1), torch.cat((value, second[2]), -1)
        dropout = self.dropout if self.training else 0.0
        mixed = functional.attention(
            query, key, value, bias, scale=self.scale, dropout=dropout
        )  # B H T (K + L)
        output = self.output(merge_heads(mixed[..., : self.width]))
        return torch.cat((output, merge_heads(mixed[..., self.width :])), -1), (key, value)


@builds(spec.TwoStreams)
class TwoStreams(Block):
    """norm(x + f(x)) for each branch f, and norm(y + g(y)) for each branch g of the second stream."""

    attention: TwoStreamAttention

    def __init__(self, spec: spec.TwoStreams, context: LayerContext) -> None:
        super().__init__(spec, context)
        assert context.second_width is not None
        assert isinstance(spec.attention, MultiHead)
        second = replace(context, d_model=context.second_width)
        self.attention = TwoStreamAttention(spec.attention, context, second)
        self.attention.component_kind = spec.attention.kind  # type: ignore[assignment]
        self.note_states()
        self.width, self.is_last = context.d_model, context.layer == context.layers - 1
        self.add_norms(spec, context)
        self.second_attention_norm = build_component(spec.norm_of("attention"), second)
        self.second_feed_forward = build_component(spec.second_feed_forward, second)
        self.second_feed_forward_norm = build_component(spec.norm_of("feed_forward"), second)

    def without_gradient(self) -> dict[str, str]:
        """The second stream after the attention of the last layer."""
        parts = ("attention.second.value", "attention.second.output", "second_attention_norm", "second_feed_forward",
                 "second_feed_forward_norm")  # fmt: skip
        reason = "the second stream, which nothing reads after the last attention"
        return dict.fromkeys(parts, reason) if self.is_last else {}

    def layer(self, x: Tensor, call: LayerCall) -> Tensor:
        """B T (D + W) -> B T (D + W)."""
        mixed, (first, second) = self._mix(x, call), (x[..., : self.width], x[..., self.width :])
        first = self.norm_of("attention")(self.joined("attention", first, mixed[..., : self.width]))
        first = self.norm_of("feed_forward")(self.joined("feed_forward", first, self._feed(first, call)))
        branch = self.attention.second.projected(mixed[..., self.width :])
        second = self.second_attention_norm(second + self.dropout(branch))
        second = self.second_feed_forward_norm(second + self.dropout(self.second_feed_forward(second)))
        return torch.cat((first, second), -1)
