"""Products with experts in standard ONNX: a Scan over the experts, which skips those that no row chose.

Shapes: rows R, rows of one expert N, width D, experts E, chosen experts K, hidden width H.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from exporters.graph.emitters.expert_matrices import ExpertMatrix, ExpertWeights, dtype_of
from exporters.graph.emitters.mixture_call import MixtureCall
from exporters.graph.emitters.registry import Call, Operand, emits
from exporters.graph.emitters.scans import scan_with
from exporters.graph.emitters.traced import ROWS, Argument, emit_traced
from exporters.graph.values import Value
from zoo import functional

SUM = torch.float32
"""The dtype of the sum over experts: ScatterND does not add half floats on the CPU."""

Step = Callable[[Value, Sequence[Sequence[Value]], Value, Sequence[Value]], Value]
"""Add one expert's result: (indices of the choices of this expert, its slices of each matrix, the result so far, the values that
every expert reads)."""


def expert_loop(experts: MixtureCall) -> Value:
    """The weighted sum of the chosen experts: B T D."""
    call, graph, dtype = experts.call, experts.call.graph, experts.dtype
    rows, weights, chosen = map(experts.rows, (experts.x, experts.weights, experts.chosen))
    matrices = [ExpertMatrix.of(call, matrix) for matrix in (*experts.into, experts.down)]
    start = call.cast(call.op("Mul", rows, graph.constant(0.0, dtype)), dtype, SUM)

    def with_expert(
        choices: Value, slices: Sequence[Sequence[Value]], so_far: Value, common: Sequence[Value]
    ) -> Value:
        rows, weights = common
        token = call.op(
            "Gather", choices, graph.constant(0, torch.int64), axis=0
        )  # N: rows; the others, which choice
        weight = call.op("GatherND", weights, call.op("Transpose", choices, perm=[1, 0]))  # N
        result = _weighted(experts, matrices, slices, call.op("Gather", rows, token, axis=0), weight)
        added: Value = call.op(
            "ScatterND", so_far, call.op("Unsqueeze", token, graph.ints(-1)), result, reduction="add"
        )
        return added

    common = [(rows, dtype), (weights, experts.weights.dtype)]
    total = _each_expert(call, chosen, matrices, start, SUM, with_expert, common)
    return graph.reshape(call.cast(total, SUM, dtype), call.result.dims)


def _each_expert(
    call: Call,
    chosen: Value,
    matrices: Sequence[ExpertMatrix],
    start: Value,
    dtype: torch.dtype,
    step: Step,
    common: Sequence[tuple[Value, torch.dtype]],
) -> Value:
    """Run a step for each chosen expert, starting from ``start``, and return the result, which has ``dtype``.

    ``common``: values that every step reads, with their dtypes.
    """
    graph, scanned = call.graph, [value for matrix in matrices for value in matrix.scanned]
    numbers = graph.constant(list(range(matrices[0].experts)), torch.int64)
    kept = [(chosen, torch.int64), *common]
    inputs = [
        ("result", dtype), *(("given", kind) for _, kind in kept),
        ("expert", torch.int64), *((tensor.name, dtype_of(tensor)) for tensor in scanned),
    ]  # fmt: skip
    with graph.body("each_expert", *inputs) as each_expert:
        so_far, chosen_copy, *rest = each_expert.inputs
        common_copies, expert, held = rest[: len(common)], rest[len(common)], iter(rest[len(common) + 1 :])
        slices = [[next(held) for _ in matrix.scanned] for matrix in matrices]
        choices = call.op("NonZero", call.op("Equal", chosen_copy, expert))  # axes of chosen, N
        some = call.op("Greater", call.op("Size", choices), graph.constant(0, torch.int64))
        with graph.body("chosen") as taken:
            taken.outputs.append(step(choices, slices, so_far, common_copies))
        with graph.body("not_chosen") as not_taken:
            not_taken.outputs.append(call.op("Identity", so_far))
        each_expert.outputs.append(call.op("If", some, then_branch=taken, else_branch=not_taken))
    for body in (each_expert, taken, not_taken):
        body.outputs[0].dtype = dtype
    result, *_ = scan_with(call, start, kept, [numbers, *scanned], each_expert)
    return result


def _weighted(
    experts: MixtureCall,
    matrices: Sequence[ExpertMatrix],
    slices: Sequence[Sequence[Value]],
    x: Value,
    weight: Value,
) -> Value:
    """One expert's weighted result, or its result for weighted inputs: N D and N -> N D."""
    call = experts.call
    factor = call.op("Unsqueeze", weight, call.graph.ints(-1))  # N 1
    x = call.op("Mul", x, factor) if experts.of_input else x
    *into, down = zip(matrices, slices, strict=True)
    hidden = _inner(experts, [matrix.product(call, x, tensors) for matrix, tensors in into])  # N H
    result = down[0].product(call, hidden, down[1])  # N D
    weighted = result if experts.of_input else call.op("Mul", result, factor)
    return call.cast(weighted, experts.dtype, SUM)


def _inner(experts: MixtureCall, values: Sequence[Value]) -> Value:
    """The computation between an expert's layers: N H -> N H."""
    width = experts.down.weight.static(2)
    arguments = (Argument(value, experts.dtype, (ROWS, width)) for value in values)
    return emit_traced(experts.call.graph, experts.inner, *arguments)[0]


@emits(functional.expert_linear)
def _expert_linear(call: Call, x: Operand, weight: Operand, bias: Operand | None, experts: Operand) -> Value:
    """One product per expert. Whole mixtures use :func:`expert_loop` instead."""
    graph, matrix = call.graph, ExpertMatrix.of(call, ExpertWeights(weight, bias))
    readers = 1 if x.dims[-2] == experts.dims[-1] else experts.static(-1)  # choices that read the same row
    rows = graph.reshape(x.value, [-1, x.static(-1)])
    chosen = graph.reshape(experts.value, [-1])  # (R K)
    sizes = call.op("Concat", call.op("Shape", chosen), graph.ints(weight.static(1)), axis=0)
    start = call.op("Expand", graph.constant(0.0, weight.dtype), sizes)

    def with_expert(
        choices: Value, slices: Sequence[Sequence[Value]], so_far: Value, common: Sequence[Value]
    ) -> Value:
        choice = call.op("Squeeze", choices, graph.ints(0))  # N
        row = choice if readers == 1 else call.op("Div", choice, graph.constant(readers, torch.int64))
        product = matrix.product(call, call.op("Gather", common[0], row, axis=0), slices[0])
        written: Value = call.op("ScatterND", so_far, call.op("Unsqueeze", choice, graph.ints(-1)), product)
        return written

    result = _each_expert(call, chosen, [matrix], start, weight.dtype, with_expert, [(rows, x.dtype)])
    return graph.reshape(result, call.result.dims)
