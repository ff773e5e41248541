"""One emitter per traced function: from its arguments to ONNX operations."""

from exporters.emitters import (
    arithmetic,
    attention,
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
    "attention",
    "emits",
    "emitter_of",
    "layers",
    "linear",
    "multi_head_attention",
    "packing",
    "rearranging",
    "sizes",
    "standard",
]
