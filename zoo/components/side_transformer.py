"""A transformer beside a mixer (Zamba: Glorioso et al., 2024).

Shapes: batch B, tokens T, width D.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

import specs.kinds.side_transformer as spec
from zoo.components.block import Block, LayerCall
from zoo.components.linear import Linear
from zoo.context import BuildContext
from zoo.core.precision import in_dtype, wide
from zoo.registry import build_component, builds


class BesideEmbedding(nn.Module):
    """[x, e]: B T D and B T D -> B T 2D."""

    component_kind = "beside_embedding"

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        return torch.cat([x, in_dtype(embedding, x.dtype)], -1)


@builds(spec.SideTransformer)
class SideTransformer(Block):
    """x + mixer(norm(x + side(feed_forward(norm(attention(norm([x, e]))))))), where e is the input of the stack."""

    def __init__(self, spec: spec.SideTransformer, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.beside = BesideEmbedding()
        both = replace(context, d_model=2 * context.d_model)
        self.attention_norm = build_component(spec.norm_of("attention"), both)
        self.feed_forward_norm = build_component(spec.norm_of("feed_forward"), context)
        self.side = Linear(context.d_model, context.d_model, bias=False)
        self.mixer_norm = build_component(spec.norm_of("mixer"), context)

    def attention_context(self, context: BuildContext) -> BuildContext:
        """The attention reads stream and embedding."""
        return replace(context, input_width=2 * context.d_model)

    def layer(self, x: Tensor, call: LayerCall) -> Tensor:
        x = wide(x)
        side = self._pass(0, self.attention_norm(self.beside(x, call.context.embedded)), call)
        side = self.side(self._feed(self.feed_forward_norm(side), call))
        mixed = self._pass(1, self.mixer_norm(x + side), call)
        return self.joined("mixer", x, mixed)
