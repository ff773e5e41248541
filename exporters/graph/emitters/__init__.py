"""Emitters: one per operation of :mod:`zoo.ops`, which writes it in ONNX."""

from exporters.graph.emitters import (
    arithmetic,
    channel_recurrence,
    convolution,
    delta_rule,
    gates,
    group_query_attention,
    layers,
    linear,
    matrix_recurrence,
    mixture,
    multi_head_attention,
    packing,
    rearranging,
    sines,
    sizes,
    standard,
)
from exporters.graph.emitters.registry import Call, Operand, emits, emitter_of

__all__ = [
    "Call",
    "Operand",
    "arithmetic",
    "channel_recurrence",
    "convolution",
    "delta_rule",
    "emits",
    "emitter_of",
    "gates",
    "group_query_attention",
    "layers",
    "linear",
    "matrix_recurrence",
    "mixture",
    "multi_head_attention",
    "packing",
    "rearranging",
    "sines",
    "sizes",
    "standard",
]
