"""Emitter of the gated delta rule: LinearAttention, or else chunks in a Scan, and one token by itself.

Shapes: batch B, heads H, tokens T, key width K, value width V, width L of a decay, rows R = B H, chunks N of C tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from exporters.emitters.linear_attention import INSIDE, linear_attention
from exporters.emitters.registry import Call, Operand, emits
from exporters.emitters.traced import ROWS, Argument, emit_traced
from exporters.fusing.recurrences import OPERATION
from exporters.graph import Value
from zoo import functional
from zoo.functional.delta import CHUNK, delta_carry, delta_chunks, delta_step


@emits(functional.gated_delta_rule)
def _gated_delta_rule(
    call: Call,
    query: Operand,
    key: Operand,
    value: Operand,
    decay: Operand,
    beta: Operand,
    state: Operand | None,
    real: Operand | None,
) -> tuple[Value, Value]:
    if call.graph.target.takes(OPERATION, INSIDE):
        return linear_attention(call, "gated_delta", query, key, value, decay, beta, state, real)
    graph, heads, tokens = call.graph, value.static(1), value.dims[2]
    parts = [
        *(_rows(call, x, heads // x.static(1)) for x in (query, key, value)),
        *(_gate_rows(call, gate, real) for gate in (decay, beta)),
    ]
    widths = [query.static(3), key.static(3), value.static(3), decay.static(3) if decay.ndim == 4 else 1, 1]
    start = _start(call, value, query.static(3), state)
    count = graph.size(tokens, value.value, 2)
    one = call.op("Squeeze", call.op("Equal", count, graph.ints(1)))
    with graph.body("one_token") as step:
        given = [_argument(x, 1, width) for x, width in zip(parts, widths, strict=True)]
        before = _argument(start, query.static(3), value.static(3))
        step.outputs += emit_traced(graph, delta_step, before, *given)
    with graph.body("many_tokens") as many:
        many.outputs += _in_chunks(call, parts, widths, start, count)
    for output in (*step.outputs, *many.outputs):
        output.dtype = INSIDE
    mixed, last = call.op("If", one, outputs=2, then_branch=step, else_branch=many)
    states = list(zip(*(info[1].shape for info in call.node.meta["info"]), strict=True))
    return graph.reshape(call.cast(mixed, INSIDE, query.dtype), value.dims), graph.reshape(last, states)


def _argument(value: Value, tokens: int, width: int) -> Argument:
    return Argument(value, INSIDE, (ROWS, tokens, width))


def _rows(call: Call, x: Operand, repeats: int) -> Value:
    """One row per head, in float32: B G T K -> R T K, with each of G heads ``repeats`` times."""
    graph, value = call.graph, call.value(x, INSIDE)
    if repeats > 1:
        apart = call.op("Unsqueeze", value, graph.ints(2))
        value = call.op("Expand", apart, graph.ints(1, 1, repeats, 1, 1))
    return graph.reshape(value, [-1, x.dims[2], x.static(3)])


def _gate_rows(call: Call, gate: Operand, real: Operand | None) -> Value:
    """The same of a gate, which is 0 for padding: B H T or B H T L -> R T L."""
    graph, value = call.graph, call.value(gate, INSIDE)
    per_channel = gate.ndim == 4
    if real is not None:
        axes = graph.ints(1, 3) if per_channel else graph.ints(1)
        kept = call.op("Unsqueeze", call.cast(real.value, real.dtype, torch.bool), axes)
        value = call.op("Where", kept, value, graph.constant(0.0, INSIDE))
    return graph.reshape(value, [-1, gate.dims[2], gate.static(3) if per_channel else 1])


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


def _in_chunks(
    call: Call, parts: Sequence[Value], widths: Sequence[int], start: Value, count: Value
) -> tuple[Value, Value]:
    """Many tokens: queries, keys, values, decays and updates, R T ..., and the state before them -> R T V, R K V."""
    graph = call.graph
    added = call.op("Mod", call.op("Neg", count), graph.ints(CHUNK))  # tokens of padding in the last chunk
    chunks = call.op("Div", call.op("Add", count, added), graph.ints(CHUNK))
    pads = call.op("Concat", graph.ints(0), added, axis=0)

    def in_chunks(x: Value, width: int) -> Argument:
        """R T ... -> (R N) C ..."""
        padded = call.op("Pad", x, pads, None, graph.ints(1))
        return _argument(call.op("Reshape", padded, graph.ints(-1, CHUNK, width)), CHUNK, width)

    def of_rows(x: Value, tokens: int, width: int) -> Value:
        """(R N) ... -> R N ..."""
        sizes = call.op("Concat", graph.ints(-1), chunks, graph.ints(tokens, width), axis=0)
        result: Value = call.op("Reshape", x, sizes)
        return result

    results = emit_traced(graph, delta_chunks, *map(in_chunks, parts, widths))
    key, value, decay = widths[1], widths[2], widths[3]
    shapes = ((CHUNK, key), (CHUNK, key), (CHUNK, CHUNK), (CHUNK, value), (CHUNK, key), (1, decay))
    scanned = [of_rows(x, *shape) for x, shape in zip(results, shapes, strict=True)]
    labels = ("query", "key", "scores", "values", "reads", "decay")
    with graph.body("chunk", ("state", INSIDE), *((label, INSIDE) for label in labels)) as body:
        so_far, *given = body.inputs
        arguments = [_argument(x, *shape) for x, shape in zip(given, shapes, strict=True)]
        mixed, last = emit_traced(graph, delta_carry, _argument(so_far, key, value), *arguments)
        body.outputs += [last, mixed]
    for output in body.outputs:
        output.dtype = INSIDE
    axes = [1] * len(scanned)
    last, mixed = call.op(
        "Scan", start, *scanned,
        outputs=2, body=body, num_scan_inputs=len(scanned), scan_input_axes=axes, scan_output_axes=[1],
    )  # fmt: skip
    joined = call.op(
        "Reshape", mixed, call.op("Concat", graph.ints(0, -1), graph.ints(value), axis=0)
    )  # R (N C) V
    return call.op("Slice", joined, graph.ints(0), count, graph.ints(1)), last
