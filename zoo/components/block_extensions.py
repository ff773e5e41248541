"""The parts that a block of any kind may have beside its branches."""

from __future__ import annotations

from specs.kinds.block import BlockParts
from zoo.components.block import Block
from zoo.components.layer_scale import LayerScale
from zoo.components.output_scale import OutputScale
from zoo.components.per_layer_embedding import PerLayerEmbedding
from zoo.components.sharing import add_adapters
from zoo.context import LayerContext
from zoo.registry import build_component, extends


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
