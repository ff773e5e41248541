"""Products with experts in standard ONNX: a Scan over the experts, which skips those that no row chose.

Shapes: rows R, rows of one expert N, width D, experts E, chosen experts K, hidden width H.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from exporters.emitters.expert_matrices import ExpertMatrix, ExpertWeights, dtype_of
from exporters.emitters.mixture_call import MixtureCall
from exporters.emitters.registry import Call, Operand, emits
from exporters.emitters.scans import scan_with
from exporters.emitters.traced import ROWS, Argument, emit_traced
from exporters.graph import Value
from zoo import functional

SUM = torch.float32
"""The dtype of the sum over experts: ScatterND adds no half floats on processors."""

Step = Callable[[Value, Sequence[Sequence[Value]], Value, Sequence[Value]], Value]
"""The result with one expert: of the places that chose it, its slices of each matrix, the result so far, and what is given to every
expert."""


def expert_loop(experts: MixtureCall) -> Value:
    """The weighted sum of the chosen experts: B T D."""
    call, graph, dtype = experts.call, experts.call.graph, experts.dtype
    rows, weights, chosen = map(experts.rows, (experts.x, experts.weights, experts.chosen))
    matrices = [ExpertMatrix.of(call, each) for each in (*experts.into, experts.down)]
    start = call.cast(call.op("Mul", rows, graph.constant(0.0, dtype)), dtype, SUM)

    def with_expert(
        places: Value, slices: Sequence[Sequence[Value]], so_far: Value, given: Sequence[Value]
    ) -> Value:
        rows, weights = given
        place = call.op(
            "Gather", places, graph.constant(0, torch.int64), axis=0
        )  # N: rows; the others, which choice
        weight = call.op("GatherND", weights, call.op("Transpose", places, perm=[1, 0]))  # N
        result = _weighted(experts, matrices, slices, call.op("Gather", rows, place, axis=0), weight)
        added: Value = call.op(
            "ScatterND", so_far, call.op("Unsqueeze", place, graph.ints(-1)), result, reduction="add"
        )
        return added

    given = [(rows, dtype), (weights, experts.weights.dtype)]
    total = _each_expert(call, chosen, matrices, start, SUM, with_expert, given)
    return graph.reshape(call.cast(total, SUM, dtype), call.result.dims)


def _each_expert(
    call: Call,
    chosen: Value,
    matrices: Sequence[ExpertMatrix],
    start: Value,
    dtype: torch.dtype,
    step: Step,
    given: Sequence[tuple[Value, torch.dtype]],
) -> Value:
    """The result of a step for each chosen expert, which begins with ``start``, of a dtype.

    ``given`` are values that every step reads, with their dtypes.
    """
    graph, scanned = call.graph, [value for matrix in matrices for value in matrix.scanned]
    numbers = graph.constant(list(range(matrices[0].experts)), torch.int64)
    same = [(chosen, torch.int64), *given]
    inputs = [
        ("result", dtype), *(("given", kind) for _, kind in same),
        ("expert", torch.int64), *((each.name, dtype_of(each)) for each in scanned),
    ]  # fmt: skip
    with graph.body("each_expert", *inputs) as each_expert:
        so_far, chosen_here, *rest = each_expert.inputs
        given_here, expert, held = rest[: len(given)], rest[len(given)], iter(rest[len(given) + 1 :])
        slices = [[next(held) for _ in matrix.scanned] for matrix in matrices]
        places = call.op("NonZero", call.op("Equal", chosen_here, expert))  # axes of chosen, N
        some = call.op("Greater", call.op("Size", places), graph.constant(0, torch.int64))
        with graph.body("chosen") as taken:
            taken.outputs.append(step(places, slices, so_far, given_here))
        with graph.body("not_chosen") as not_taken:
            not_taken.outputs.append(call.op("Identity", so_far))
        each_expert.outputs.append(call.op("If", some, then_branch=taken, else_branch=not_taken))
    for body in (each_expert, taken, not_taken):
        body.outputs[0].dtype = dtype
    result, *_ = scan_with(call, start, same, [numbers, *scanned], each_expert)
    return result


def _weighted(
    experts: MixtureCall,
    matrices: Sequence[ExpertMatrix],
    slices: Sequence[Sequence[Value]],
    x: Value,
    weight: Value,
) -> Value:
    """The weighted result of one expert, or that of its weighted input: N D and N -> N D."""
    call = experts.call
    factor = call.op("Unsqueeze", weight, call.graph.ints(-1))  # N 1
    x = call.op("Mul", x, factor) if experts.of_input else x
    *into, down = zip(matrices, slices, strict=True)
    hidden = _inner(experts, [matrix.product(call, x, given) for matrix, given in into])  # N H
    result = down[0].product(call, hidden, down[1])  # N D
    weighted = result if experts.of_input else call.op("Mul", result, factor)
    return call.cast(weighted, experts.dtype, SUM)


def _inner(experts: MixtureCall, values: Sequence[Value]) -> Value:
    """What an expert does between its layers: N H -> N H."""
    width = experts.down.weight.static(2)
    given = (Argument(value, experts.dtype, (ROWS, width)) for value in values)
    return emit_traced(experts.call.graph, experts.inner, *given, module=experts.inner)[0]


@emits(functional.expert_linear)
def _expert_linear(call: Call, x: Operand, weight: Operand, bias: Operand | None, experts: Operand) -> Value:
    """One product per expert.  The parts of a mixture are not written with it: see :func:`expert_loop`."""
    graph, matrix = call.graph, ExpertMatrix.of(call, ExpertWeights(weight, bias))
    readers = 1 if x.dims[-2] == experts.dims[-1] else experts.static(-1)  # choices that read the same row
    rows = graph.reshape(x.value, [-1, x.static(-1)])
    chosen = graph.reshape(experts.value, [-1])  # (R K)
    sizes = call.op("Concat", call.op("Shape", chosen), graph.ints(weight.static(1)), axis=0)
    start = call.op("Expand", graph.constant(0.0, weight.dtype), sizes)

    def with_expert(
        places: Value, slices: Sequence[Sequence[Value]], so_far: Value, given: Sequence[Value]
    ) -> Value:
        place = call.op("Squeeze", places, graph.ints(0))  # N
        row = place if readers == 1 else call.op("Div", place, graph.constant(readers, torch.int64))
        product = matrix.product(call, call.op("Gather", given[0], row, axis=0), slices[0])
        written: Value = call.op("ScatterND", so_far, call.op("Unsqueeze", place, graph.ints(-1)), product)
        return written

    result = _each_expert(call, chosen, [matrix], start, weight.dtype, with_expert, [(rows, x.dtype)])
    return graph.reshape(result, call.result.dims)
