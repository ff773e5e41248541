"""One emitter per traced function: from its arguments to ONNX operations."""

from exporters.emitters import (
    arithmetic,
    group_query_attention,
    layers,
    linear,
    multi_head_attention,
    packing,
    rearranging,
    sizes,
    standard,
)
from exporters.emitters.registry import Call, emits, emitter_of

__all__ = [
    "Call",
    "arithmetic",
    "emits",
    "emitter_of",
    "group_query_attention",
    "layers",
    "linear",
    "multi_head_attention",
    "packing",
    "rearranging",
    "sizes",
    "standard",
]
