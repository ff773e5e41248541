"""The parts that a block of any kind may have beside its branches: B T D -> B T D."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from specs.kinds.block import BlockParts
from zoo.components.block import Block, Branch, LayerCall
from zoo.components.per_layer_embedding import PerLayerEmbedding
from zoo.components.sharing import add_adapters
from zoo.context import LayerContext
from zoo.core.initialization import Distribution
from zoo.core.precision import in_dtype, wide
from zoo.registry import build_component, extends


class LayerScale(nn.Module):
    """x * weight, in float32 or wider, with a trained factor per feature (Touvron et al., 2021)."""

    component_kind = "layer_scale"

    def __init__(self, start: float, d_model: int) -> None:
        super().__init__()
        self.start = start
        self.weight = nn.Parameter(torch.empty(d_model))

    def initial(self, leaf: str) -> Distribution:
        """The same value for every feature."""
        return Distribution(constant=self.start)

    def forward(self, x: Tensor) -> Tensor:
        x = wide(x)
        return x * in_dtype(self.weight, x.dtype)


class OutputScale(nn.Module):
    """x * weight, in float32 or wider, with one stored, untrained factor (Gemma 4)."""

    component_kind = "output_scale"
    weight: Tensor

    def __init__(self, start: float) -> None:
        super().__init__()
        self.start = start
        self.register_buffer("weight", torch.empty(1))

    def initial(self, leaf: str) -> Distribution:
        """The value of the spec."""
        return Distribution(constant=self.start)

    def around(self, layer: Branch, x: Tensor, call: LayerCall) -> Tensor:
        """The output of a layer, scaled."""
        return self(layer(x, call))

    def forward(self, x: Tensor) -> Tensor:
        x = wide(x)
        return x * in_dtype(self.weight, x.dtype)


@extends(BlockParts)
def extend(block: Block, spec: BlockParts, context: LayerContext) -> None:
    """Add the residual connection of the feed-forward, LayerScale, adapters, an embedding of the tokens for this layer alone, and a
    factor on the output, each if the spec has it."""
    if spec.feed_forward_residual is not None:
        block.add_module("feed_forward_residual", build_component(spec.feed_forward_residual, context))
        block.residual_names["feed_forward"] = "feed_forward_residual"
    if spec.layer_scale is not None:
        for branch in block.branch_names:
            block.add_module(f"{branch}_scale", LayerScale(spec.layer_scale, context.d_model))
            block.scale_names[branch] = f"{branch}_scale"
    if spec.sharing is not None and spec.sharing.adapters is not None:
        add_adapters(block, spec.sharing.adapters)
    if spec.per_layer_embedding is not None:
        embedding = PerLayerEmbedding(spec.per_layer_embedding, spec.dropout, context)
        block.extend("per_layer_embedding", embedding)
    if spec.output_scale is not None:
        block.extend("output_scale", OutputScale(spec.output_scale))
