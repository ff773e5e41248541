"""Mixtures of experts with static shapes: every expert processes every row, and only the chosen results count.

Used for targets without operations whose output shape depends on data.

Shapes: rows R, width D, experts E, chosen experts K, hidden width H, blocks of a row B.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from exporters.graph.content import INT4
from exporters.graph.emitters.expert_matrices import ExpertWeights
from exporters.graph.emitters.mixture_call import MixtureCall
from exporters.graph.emitters.registry import Call
from exporters.graph.emitters.traced import ROWS, Argument, emit_traced
from exporters.graph.quantization.matrix import QuantizedMatrix
from exporters.graph.values import Value


def every_expert(experts: MixtureCall) -> Value:
    """The weighted sum of the chosen experts: B T D."""
    call, ints, dtype = experts.call, experts.call.graph.ints, experts.dtype
    chosen, shares = _chosen(experts)  # R K E and R E
    taken = _per_row(call, call.op("ReduceMax", chosen, ints(1), keepdims=0))  # E R 1
    share = taken if experts.of_input else _per_row(call, shares)
    rows = call.op("Unsqueeze", experts.rows(experts.x), ints(0))  # 1 R D
    if experts.of_input:
        rows = call.op("Mul", rows, _per_row(call, shares))
    hidden = _inner(experts, [_product(call, rows, matrices) for matrices in experts.into])  # E R H
    counted = call.op(
        "Where", call.cast(taken, dtype, torch.bool), call.op("Mul", hidden, share),
        call.graph.constant(0.0, dtype),
    )  # fmt: skip  # an overflow in an expert that was not chosen becomes no NaN
    width = experts.count * experts.down.weight.static(2)
    side_by_side = call.op(
        "Reshape", call.op("Transpose", counted, perm=[1, 0, 2]), ints(-1, width)
    )  # R (E H)
    down = call.op("Reshape", _turned(call, experts.down), ints(width, -1))  # (E H) D
    total = call.op("MatMul", side_by_side, down)
    if (bias := experts.down.bias_value) is not None:
        total = call.op(
            "Add",
            total,
            call.op("MatMul", call.op("Transpose", call.op("Squeeze", share, ints(-1)), perm=[1, 0]), bias),
        )
    return call.graph.reshape(total, call.result.dims)


def _chosen(experts: MixtureCall) -> tuple[Value, Value]:
    """The one-hot choices of each row, R K E, and the weight of each expert for each row, R E."""
    call, ints, dtype = experts.call, experts.call.graph.ints, experts.dtype
    choices = call.op("Unsqueeze", experts.rows(experts.chosen), ints(-1))
    same = call.op("Equal", choices, ints(*range(experts.count)))
    chosen = call.cast(same, torch.bool, dtype)
    weights = call.op("Unsqueeze", experts.rows(experts.weights), ints(-1))  # R K 1
    shares = call.op("ReduceSum", call.op("Mul", chosen, weights), ints(1), keepdims=0)
    return chosen, shares


def _per_row(call: Call, values: Value) -> Value:
    """One value per row and expert, R E, as factors for each expert's rows: E R 1."""
    result: Value = call.op("Unsqueeze", call.op("Transpose", values, perm=[1, 0]), call.graph.ints(-1))
    return result


def _product(call: Call, x: Value, matrices: ExpertWeights) -> Value:
    """x @ weight^T + bias for all experts: 1 R D or E R D -> E R H."""
    result: Value = call.op("MatMul", x, _turned(call, matrices))
    if matrices.bias_value is None:
        return result
    added: Value = call.op("Add", result, call.op("Unsqueeze", matrices.bias_value, call.graph.ints(1)))
    return added


def _inner(experts: MixtureCall, values: Sequence[Value]) -> Value:
    """The computation between the layers of all experts: E R H -> E R H."""
    graph, width = experts.call.graph, experts.down.weight.static(2)
    rows = (experts.call.op("Reshape", value, graph.ints(-1, width)) for value in values)
    arguments = (Argument(value, experts.dtype, (ROWS, width)) for value in rows)
    (result,) = emit_traced(graph, experts.inner, *arguments)
    apart: Value = experts.call.op("Reshape", result, graph.ints(experts.count, -1, width))
    return apart


def _turned(call: Call, matrices: ExpertWeights) -> Value:
    """The matrices of all experts, dequantized and transposed for use as a right-hand side: E D H."""
    weight, blocks = matrices.weight, matrices.blocks(call)
    if blocks is None:
        turned: Value = call.op("Transpose", weight.value, perm=[0, 2, 1])
        return turned
    shape = weight.info[0].shape
    matrix = QuantizedMatrix((weight.value.name,), shape[2], blocks, "rows", weight.dtype)
    codes = call.graph.parameter(
        f"{weight.value.name}.rows", shape, torch.int8 if blocks.bits == 8 else INT4, matrix, 0
    )
    scales = (*shape[:2], blocks.count(shape[2]))
    scale = call.graph.parameter(f"{weight.value.name}.scale", scales, weight.dtype, matrix, 1)
    whole = call.op("DequantizeLinear", codes, scale, axis=2, block_size=blocks.size)
    result: Value = call.op("Transpose", whole, perm=[0, 2, 1])
    return result
