"""LinearAttention, of com.microsoft or of opset 27: recurrences whose state is one matrix per head.

It runs in float32 whatever its inputs are: its CUDA kernels take states only in the dtype of the inputs. In opset 27 value
heads cannot share a key head, so key heads are repeated.

Shapes: batch B, key heads G, heads H, tokens T, key width K, value width V.
"""

from __future__ import annotations

import torch

from exporters.graph.emitters.rearranging import transposed
from exporters.graph.emitters.registry import Call, Operand
from exporters.graph.fusing.recurrences import OPERATION
from exporters.graph.values import Value

INSIDE = torch.float32
"""The dtype of states, and of all operands."""


def linear_attention(
    call: Call,
    query: Operand,
    key: Operand,
    value: Operand,
    decay: Operand,
    beta: Operand | None,
    state: Operand | None,
    real: Operand | None,
) -> tuple[Value, Value]:
    """Return the results of all tokens, B H T V in the call's dtype, and the last state, B H K V in float32.

    query and key: B G T K with G dividing H, value: B H T V, decay: its logarithm, B H T or B H T K, beta: B H T for the gated
    delta rule, None for the gated rule, real: B T, 0 for padding, which changes no state.
    """
    domain = call.graph.target.domain(OPERATION)
    repeats = 1 if domain else value.static(1) // key.static(1)
    decays, keys, updates = _packed(call, decay), _packed(call, key, repeats), None
    decays = without_padding(call, decays, real)
    if beta is None:
        keys = without_padding(call, keys, real)
    else:
        updates = without_padding(call, _packed(call, beta), real)
    mixed, last = call.op(
        OPERATION, _packed(call, query, repeats), keys, _packed(call, value), None if state is None else state.value, decays, updates,
        outputs=2, domain=domain, update_rule="gated" if beta is None else "gated_delta", q_num_heads=repeats * query.static(1), kv_num_heads=value.static(1), scale=1.0,
    )  # fmt: skip
    wanted = call.result.info[0][0].dtype
    batch, _, tokens, width = value.dims
    apart = call.graph.reshape(call.cast(mixed, INSIDE, wanted), [batch, tokens, value.static(1), width])
    return transposed(call, apart, [0, 2, 1, 3]), last


def _packed(call: Call, x: Operand, repeats: int = 1) -> Value:
    """Heads side by side in float32, each ``repeats`` times: B H T K -> B T (H K), B H T -> B T H."""
    graph, aside = call.graph, transposed(call, x.value, [0, 2, 1, 3][: x.ndim])
    if repeats > 1:
        apart = call.op("Unsqueeze", aside, graph.ints(3))
        aside = call.op("Expand", apart, graph.ints(1, 1, 1, repeats, 1))  # B T H R K
    if x.ndim == 4:
        aside = graph.reshape(aside, [x.dims[0], x.dims[2], repeats * x.static(1) * x.static(3)])
    return call.cast(aside, x.dtype, INSIDE)


def without_padding(call: Call, x: Value, real: Operand | None) -> Value:
    """0 for padding: B T N, B T -> B T N."""
    if real is None:
        return x
    kept = call.op("Unsqueeze", call.cast(real.value, real.dtype, torch.bool), call.graph.ints(2))
    result: Value = call.op("Where", kept, x, call.graph.constant(0.0, INSIDE))
    return result
