"""Delta rules in standard operations: a Scan over chunks, or over single tokens.

Shapes: batch B, heads H, tokens T, key width K, value width V, rows R = B H, chunks N of C tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from exporters.graph.emitters.linear_attention import INSIDE
from exporters.graph.emitters.registry import Call, Operand
from exporters.graph.emitters.scans import padded, scan
from exporters.graph.emitters.traced import ROWS, Argument, emit_traced
from exporters.graph.values import Value
from zoo.functional.delta import CHUNK

Shape = tuple[int, int]


class DeltaRule(NamedTuple):
    """A delta rule in three parts: a step by one token, the state-free part of all chunks, and a step by one chunk.

    ``scanned`` names the results of ``chunks`` and gives the sizes of each, after the rows.
    """

    step: Callable[..., Any]
    chunks: Callable[..., Any]
    carry: Callable[..., Any]
    scanned: dict[str, Shape]


class RowInput(NamedTuple):
    """An input of a rule as R T L, in float32, and its width L."""

    value: Value
    width: int


def rows(call: Call, x: Operand, repeats: int = 1) -> RowInput:
    """One row per head: B G T K -> R T K, with each of G heads ``repeats`` times."""
    graph, value = call.graph, call.value(x, INSIDE)
    if repeats > 1:
        apart = call.op("Unsqueeze", value, graph.ints(2))
        value = call.op("Expand", apart, graph.ints(1, 1, repeats, 1, 1))
    return RowInput(graph.reshape(value, [-1, x.dims[2], x.static(3)]), x.static(3))


def rows_without_padding(call: Call, x: Operand, real: Operand | None) -> RowInput:
    """One row per head, 0 for padding: B H T or B H T L, B T -> R T L."""
    graph, value = call.graph, call.value(x, INSIDE)
    wide = x.ndim == 4
    if real is not None:
        axes = graph.ints(1, 3) if wide else graph.ints(1)
        kept = call.op("Unsqueeze", call.cast(real.value, real.dtype, torch.bool), axes)
        value = call.op("Where", kept, value, graph.constant(0.0, INSIDE))
    width = x.static(3) if wide else 1
    return RowInput(graph.reshape(value, [-1, x.dims[2], width]), width)


def emit_delta_rule(
    call: Call,
    rule: DeltaRule,
    parts: Sequence[RowInput],
    query: Operand,
    value: Operand,
    state: Operand | None,
) -> tuple[Value, Value]:
    """Return the results of all tokens, B H T V in the dtype of the queries, and the last state, B H K V in float32."""
    graph, tokens = call.graph, value.dims[2]
    key, out = query.static(3), value.static(3)
    start = _start(call, value, key, state)
    states = list(zip(*(info[1].shape for info in call.node.meta["info"]), strict=True))
    if not graph.target.chunks_delta_rules:
        mixed, last = _by_tokens(call, rule, parts, start, (key, out))
        return graph.reshape(call.cast(mixed, INSIDE, query.dtype), value.dims), graph.reshape(last, states)
    count = graph.size(tokens, value.value, 2)
    one = call.op("Squeeze", call.op("Equal", count, graph.ints(1)))
    with graph.body("one_token") as step:
        inputs = [_argument(part.value, 1, part.width) for part in parts]
        step.outputs += emit_traced(graph, rule.step, _argument(start, key, out), *inputs)
    with graph.body("many_tokens") as many:
        many.outputs += _in_chunks(call, rule, parts, start, (key, out), count)
    for output in (*step.outputs, *many.outputs):
        output.dtype = INSIDE
    mixed, last = call.op("If", one, outputs=2, then_branch=step, else_branch=many)
    return graph.reshape(call.cast(mixed, INSIDE, query.dtype), value.dims), graph.reshape(last, states)


def _argument(value: Value, tokens: int, width: int) -> Argument:
    return Argument(value, INSIDE, (ROWS, tokens, width))


def _start(call: Call, value: Operand, width: int, state: Operand | None) -> Value:
    """The state before all tokens: R K V."""
    graph = call.graph
    if state is not None:
        return graph.reshape(call.value(state, INSIDE), [-1, width, value.static(3)])
    batch = graph.size(value.dims[0], value.value, 0)
    rows = call.op("Mul", batch, graph.ints(value.static(1)))
    sizes = call.op("Concat", rows, graph.ints(width, value.static(3)), axis=0)
    zeros: Value = call.op("Expand", graph.constant(0.0, INSIDE), sizes)
    return zeros


def _by_tokens(
    call: Call, rule: DeltaRule, parts: Sequence[RowInput], start: Value, state: Shape
) -> tuple[Value, Value]:
    """One token after another: the inputs of a rule, R T ..., and the state before them -> R T V, R K V."""
    graph, axes = call.graph, [1] * len(parts)
    with graph.body("token", ("state", INSIDE), *(("part", INSIDE) for _ in parts)) as body:
        so_far, *arguments = body.inputs
        tokens = [
            _argument(call.op("Unsqueeze", x, graph.ints(1)), 1, part.width)
            for x, part in zip(arguments, parts, strict=True)
        ]
        mixed, last = emit_traced(graph, rule.step, _argument(so_far, *state), *tokens)
        body.outputs += [last, call.op("Squeeze", mixed, graph.ints(1))]
    for output in body.outputs:
        output.dtype = INSIDE
    last, mixed = call.op(
        "Scan", start, *(part.value for part in parts),
        outputs=2, body=body, num_scan_inputs=len(parts), scan_input_axes=axes, scan_output_axes=[1],
    )  # fmt: skip
    return mixed, last


def _in_chunks(
    call: Call, rule: DeltaRule, parts: Sequence[RowInput], start: Value, state: Shape, count: Value
) -> tuple[Value, Value]:
    """Many tokens: the inputs of a rule, R T ..., and the state before them -> R T V, R K V."""
    graph = call.graph
    added = call.op("Mod", call.op("Neg", count), graph.ints(CHUNK))  # padding tokens in the last chunk
    chunks = call.op("Div", call.op("Add", count, added), graph.ints(CHUNK))

    def in_chunks(x: RowInput) -> Argument:
        """R T ... -> (R N) C ..."""
        whole = padded(call, x.value, 3, 1, added)
        return _argument(call.op("Reshape", whole, graph.ints(-1, CHUNK, x.width)), CHUNK, x.width)

    def of_rows(x: Value, shape: Shape) -> Value:
        """(R N) ... -> R N ..."""
        sizes = call.op("Concat", graph.ints(-1), chunks, graph.ints(*shape), axis=0)
        result: Value = call.op("Reshape", x, sizes)
        return result

    results = emit_traced(graph, rule.chunks, *map(in_chunks, parts))
    scanned = [of_rows(x, shape) for x, shape in zip(results, rule.scanned.values(), strict=True)]
    with graph.body("chunk", ("state", INSIDE), *((label, INSIDE) for label in rule.scanned)) as body:
        so_far, *parts_of_chunk = body.inputs
        arguments = [
            _argument(x, *shape) for x, shape in zip(parts_of_chunk, rule.scanned.values(), strict=True)
        ]
        mixed, last = emit_traced(graph, rule.carry, _argument(so_far, *state), *arguments)
        body.outputs += [last, mixed]
    for output in body.outputs:
        output.dtype = INSIDE
    ranks = [2 + len(shape) for shape in rule.scanned.values()]
    last, mixed = scan(call, start, scanned, ranks, 1, body, 4)
    joined = call.op(
        "Reshape", mixed, call.op("Concat", graph.ints(0, -1), graph.ints(state[1]), axis=0)
    )  # R (N C) V
    return call.op("Slice", joined, graph.ints(0), count, graph.ints(1)), last
