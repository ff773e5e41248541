"""Emitters of standard operations introduced in opset 23."""

from __future__ import annotations

from exporters.graph.emitters.registry import Call, Operand, emits
from exporters.graph.fusing.functions import whole_attention, whole_rotation, whole_write
from exporters.graph.values import Value


@emits(whole_attention)
def _whole_attention(
    call: Call, query: Operand, key: Operand, value: Operand, bias: Operand | None, *, scale: float
) -> Value:
    mask = [] if bias is None else [_for_every_query(call, bias, query)]
    result: Value = call.op("Attention", query.value, key.value, value.value, *mask, scale=scale)
    return result


def _for_every_query(call: Call, bias: Operand, query: Operand) -> Value:
    """Return a bias expanded to one row per query: kernels broadcast it only over rows and heads."""
    length = query.dims[2]
    if bias.dims[2] == length:
        return bias.value
    one = call.graph.ints(1)
    shape = call.op("Concat", one, one, call.graph.size(length, query.value, 2), one, axis=0)
    repeated: Value = call.op("Expand", bias.value, shape)
    return repeated


@emits(whole_rotation)
def _whole_rotation(
    call: Call, x: Operand, cos: Operand, sin: Operand, *, dimensions: int, interleaved: bool
) -> Value:
    part = {"rotary_embedding_dim": dimensions} if dimensions != x.static(3) else {}
    result: Value = call.op(
        "RotaryEmbedding", x.value, cos.value, sin.value, interleaved=int(interleaved), **part
    )
    return result


@emits(whole_write)
def _whole_write(call: Call, past: Operand, new: Operand, start: Operand) -> Value:
    result: Value = call.op("TensorScatter", past.value, new.value, start.value, axis=2)
    return result
