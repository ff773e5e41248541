"""Emitter of GroupQueryAttention: attention with its cache and its rotation as one operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from exporters.graph.content import Computed
from exporters.graph.emitters.registry import Call, Operand, emits
from exporters.graph.fusing.functions import RotaryTables, group_query_attention, head_width
from exporters.graph.quantization.cache_scales import KEY, VALUE, CacheScale
from exporters.graph.quantization.cache_scheme import QUANTIZED_TYPE, CacheFormat
from exporters.graph.values import Value
from exporters.target.targets import CONTRIB


@emits(group_query_attention)
def _group_query_attention(
    call: Call,
    projected: Sequence[Operand],
    past_key: Operand,
    past_value: Operand,
    mask: Operand,
    *,
    heads: int,
    scale: float,
    window: int | None,
    softcap: float | None,
    sinks: Operand | None,
    position_bias: Operand | None,
    rotation: RotaryTables | None,
    cache: CacheFormat | None = None,
    window_cache: bool = False,
) -> tuple[Value, ...]:
    query, key, value = [*(part.value for part in projected), None, None][:3]
    dtype, groups = projected[0].dtype, past_key.static(1)
    lengths, total = _lengths(call, mask)
    cos, sin = (None, None) if rotation is None else _tables(call, rotation, dtype)
    options: dict[str, Any] = {} if rotation is None else {"do_rotary": 1}
    if rotation is not None and rotation.interleaved:
        options["rotary_interleaved"] = 1
    if window is not None:
        options["local_window_size"] = window
    if window_cache:
        options["sliding_window_cache"] = 1
    if softcap is not None:
        options["softcap"] = softcap
    bias, sink = (None if x is None else call.value(x, dtype) for x in (position_bias, sinks))
    past = [past_key.value, past_value.value]
    inputs = [query, key, value, *past, lengths, total, cos, sin, None, bias, sink]
    if cache is not None:
        width = head_width(sum(part.static(2) for part in projected), heads, groups)
        inputs += _scales(call, cache, groups, width)
        options |= {"k_quant_type": QUANTIZED_TYPE, "v_quant_type": QUANTIZED_TYPE}
        options["kv_cache_bit_width"] = cache.bits
    results: tuple[Value, ...] = call.op(
        "GroupQueryAttention",
        *inputs,
        outputs=3,
        domain=CONTRIB,
        num_heads=heads,
        kv_num_heads=groups,
        scale=scale,
        **options,
    )
    return results


def _scales(call: Call, cache: CacheFormat, groups: int, width: int) -> list[Value]:
    """Return the scales of cached keys and values, 1 G 1 K each; layers that share a block share them."""
    contents = [CacheScale(call.graph.path, part, cache) for part in (KEY, VALUE)]
    return [
        call.graph.parameter(content.name, (1, groups, 1, width), torch.float32, content)
        for content in contents
    ]


def _lengths(call: Call, mask: Operand) -> tuple[Value, Value]:
    """Return the index of the last real token of each row of a cache, and the length of its longest row, int32.

    The length is taken from the first row: without rows this Gather fails, whereas the attention would divide by zero and
    end the process.
    """
    graph = call.graph
    count = call.op("ReduceSum", mask.value, graph.ints(1), keepdims=0)
    last = call.op("Max", call.op("Sub", count, graph.constant(1, mask.dtype)), graph.constant(0, mask.dtype))
    first = call.op("Gather", mask.value, graph.constant(0, torch.int64), axis=0)
    total = call.op("Squeeze", call.op("Shape", first))
    return call.cast(last, mask.dtype, torch.int32), call.cast(total, torch.int64, torch.int32)


def _tables(call: Call, rotation: RotaryTables, dtype: torch.dtype) -> list[Value]:
    """Return the cosines and sines of all positions, shared by all layers with the same rotation."""
    shape = (rotation.positions, len(rotation.frequencies))
    return [
        call.graph.parameter(
            call.graph.shared_name(f"rotary.{label}", rotation),
            shape,
            dtype,
            Computed(table, dtype),
        )
        for label, table in (("cos", rotation.cos), ("sin", rotation.sin))
    ]
