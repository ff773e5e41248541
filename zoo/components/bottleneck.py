"""Blocks that are narrower inside than the residual stream (MobileBERT: Sun et al., 2020).

Shapes: batch B, tokens T, width D, and W of the narrower stream.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

import specs.kinds.bottleneck as spec
from zoo.components.block import Block, LayerCall
from zoo.components.linear import Linear
from zoo.context import BuildContext
from zoo.core.precision import in_dtype, wide
from zoo.registry import build_component, builds


class _Part(Linear):
    """A linear layer of some channels of its input, from ``start`` on; hooks see these alone."""

    def __init__(self, start: int, like: Linear, width: int) -> None:
        super().__init__(width, like.out_features, bias=like.bias is not None)
        self.start = start

    def __call__(self, x: Tensor) -> Tensor:
        result: Tensor = super().__call__(x[..., self.start : self.start + self.in_features])
        return result


class _Narrowed(nn.Module):
    """norm(linear(x))."""

    component_kind = "bottleneck_matrix"

    def __init__(self, spec: spec.Bottleneck, context: BuildContext) -> None:
        super().__init__()
        self.linear = Linear(context.d_model, spec.width)
        self.norm = build_component(spec.norm, replace(context, d_model=spec.width))

    def forward(self, x: Tensor) -> Tensor:
        normed: Tensor = self.norm(self.linear(x))
        return normed


class _FeedForward(nn.Module):
    """norm(y + feed_forward(y))."""

    component_kind = "bottleneck_feed_forward"

    def __init__(self, spec: spec.Bottleneck, inner: BuildContext) -> None:
        super().__init__()
        self.feed_forward = build_component(spec.feed_forward, inner)
        self.norm = build_component(spec.norm_of("feed_forward"), inner)

    def forward(self, y: Tensor) -> Tensor:
        normed: Tensor = self.norm(wide(y) + self.feed_forward(y))
        return normed


@builds(spec.Bottleneck)
class Bottleneck(Block):
    """norm(x + output(y)), where y is the output of norm(y + f(y)) for each branch f in turn, which begins as input(x); the attention
    reads [shared(x), x]: queries, keys and gates the first part, values the second."""

    def __init__(self, spec: spec.Bottleneck, context: BuildContext) -> None:
        inner, width = replace(context, d_model=spec.width), context.d_model
        super().__init__(spec, inner)
        attention: Any = self.attention
        for name, part in [*attention.named_children()]:
            if name in ("query", "key", "gate"):
                setattr(attention, name, _Part(0, part, spec.width))
        attention.value = _Part(spec.width, attention.value, width)
        self.input, self.shared = _Narrowed(spec, context), _Narrowed(spec, context)
        self.earlier = nn.ModuleList(_FeedForward(spec, inner) for _ in range(spec.feed_forwards - 1))
        self.add_norms(spec, inner)
        self.output = Linear(spec.width, width)
        self.output_norm = build_component(spec.norm, context)

    def layer(self, x: Tensor, call: LayerCall) -> Tensor:
        x = wide(x)
        shared = self.shared(x)
        mixed = self._mix(torch.cat((shared, in_dtype(x, shared.dtype)), -1), call)
        y = self.norm_of("attention")(wide(self.input(x)) + mixed)  # B T W
        for part in self.earlier:
            y = part(y)
        y = self.norm_of("feed_forward")(wide(y) + self._feed(y, call))
        return self.output_norm(x + self.dropout(self.output(y)))
