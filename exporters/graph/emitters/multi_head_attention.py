"""Emitter of MultiHeadAttention: attention over concatenated heads as one operation."""

from __future__ import annotations

import torch

from exporters.graph.emitters.registry import Call, Operand, emits
from exporters.graph.fusing.functions import multi_head_attention
from exporters.graph.values import Value
from exporters.target.targets import CONTRIB


@emits(multi_head_attention)
def _multi_head_attention(
    call: Call,
    query: Operand,
    key: Operand,
    value: Operand,
    key_mask: Operand | None = None,
    bias: Operand | None = None,
    *past: Operand,
    heads: int,
    scale: float,
) -> Value | tuple[Value, ...]:
    inputs = [query.value, key.value, value.value, None, _real(call, key_mask), bias.value if bias else None]
    inputs += [part.value for part in past]
    result: Value | tuple[Value, ...] = call.op(
        "MultiHeadAttention",
        *inputs,
        outputs=3 if past else 1,
        domain=CONTRIB,
        num_heads=heads,
        scale=scale,
        mask_filter_value=torch.finfo(query.dtype).min,
    )
    return result


def _real(call: Call, mask: Operand | None) -> Value | None:
    """Return the key mask in int32: 1 for real keys, 0 for padding."""
    if mask is None:
        return None
    padding = call.op("Equal", mask.value, call.graph.constant(0, mask.dtype))
    return call.cast(call.op("Not", padding), torch.bool, torch.int32)
