"""The weights to which a size budget gives more bits than the precision."""

from __future__ import annotations

from collections.abc import Mapping

from exporters.graph.precisions import PRECISIONS
from zoo.record.records import MixedRecord
from zoo.weights.blocks import Blocks

BlocksByWeight = Mapping[str, Blocks | None]
"""The blocks of weights by name; None for float16."""


def recorded_blocks(record: MixedRecord | None) -> dict[str, Blocks | None]:
    """The blocks of the weights that have more bits than the precision."""
    return {
        name: None if group.blocks is None else Blocks(**group.blocks.model_dump())
        for group in (record.groups if record is not None else ())
        if group.raised
        for name in group.weights
    }


def more_bits_limits(more_bits: BlocksByWeight) -> dict[str, float]:
    """The largest errors of stored weights that have more bits than the precision."""
    return {
        name: PRECISIONS["fp16" if blocks is None else "int8"].weight_error
        for name, blocks in more_bits.items()
    }
