"""The parts that a block of any kind may have beside its branches."""

from __future__ import annotations

from specs.kinds.block import BlockParts
from zoo.components.block import Block
from zoo.components.output_scale import OutputScale
from zoo.components.per_layer_embedding import PerLayerEmbedding
from zoo.components.sharing import add_adapters
from zoo.context import LayerContext
from zoo.registry import extends


@extends(BlockParts)
def extend(block: Block, spec: BlockParts, context: LayerContext) -> None:
    """Add adapters, an embedding of the tokens for this layer alone, and a factor on the output, each if the spec has it."""
    if spec.sharing is not None and spec.sharing.adapters is not None:
        add_adapters(block, spec.sharing.adapters)
    if spec.per_layer_embedding is not None:
        embedding = PerLayerEmbedding(spec.per_layer_embedding, spec.dropout, context)
        block.extend("per_layer_embedding", embedding)
    if spec.output_scale is not None:
        block.extend("output_scale", OutputScale(spec.output_scale))
