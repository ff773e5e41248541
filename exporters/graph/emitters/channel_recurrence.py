"""Recurrences with one decay per channel: a Scan over tokens.

(com.microsoft's LinearAttention also computes a diagonal recurrence, with heads of width 1, but its CPU kernel takes
several times as long.)

Shapes: batch B, length T, channels D, state width N.
"""

from __future__ import annotations

from exporters.graph.emitters.linear_attention import INSIDE, without_padding
from exporters.graph.emitters.matrix_recurrence import start_state
from exporters.graph.emitters.registry import Call, Operand, emits
from exporters.graph.emitters.scans import scan
from exporters.graph.values import Value
from zoo import functional


@emits(functional.diagonal_recurrence)
def _diagonal_recurrence(
    call: Call, x: Operand, decay: Operand, state: Operand | None, real: Operand | None
) -> tuple[Value, Value]:
    wide = [without_padding(call, call.cast(part.value, part.dtype, INSIDE), real) for part in (x, decay)]
    past, channels = start_state(call, state, x, x.static(2)), call.op("Exp", wide[1])
    with call.graph.body("each_token", ("state", INSIDE), ("x", INSIDE), ("decay", INSIDE)) as each_token:
        before, added, kept = each_token.inputs
        after = call.op("Add", call.op("Mul", kept, before), added)
        each_token.outputs += [after, call.op("Identity", after)]
    for result in each_token.outputs:
        result.dtype = INSIDE
    new, states = scan(call, past, [wide[0], channels], [3, 3], 1, each_token, 3)
    return call.cast(states, INSIDE, x.dtype), new


@emits(functional.selective_scan)
def _selective_scan(
    call: Call,
    x: Operand,
    delta: Operand,
    a: Operand,
    b: Operand,
    c: Operand,
    state: Operand | None,
    real: Operand | None,
) -> tuple[Value, Value]:
    op, ints = call.op, call.graph.ints
    inputs, steps, rates, into, out = (
        call.cast(part.value, part.dtype, INSIDE) for part in (x, delta, a, b, c)
    )
    steps = without_padding(call, steps, real)
    past = start_state(call, state, x, *a.info[0].shape)
    names = ("state", "rates", "step", "x", "b", "c")
    with call.graph.body("each_token", *((name, INSIDE) for name in names)) as each_token:
        before, same, step, added, b_t, c_t = each_token.inputs
        kept = op("Mul", op("Exp", op("Mul", op("Unsqueeze", step, ints(-1)), same)), before)  # B D N
        after = op("Add", kept, op("Mul", op("Unsqueeze", added, ints(-1)), op("Unsqueeze", b_t, ints(1))))
        y = op("Squeeze", op("MatMul", after, op("Unsqueeze", c_t, ints(-1))), ints(-1))  # B D
        each_token.outputs += [after, y]
    for result in each_token.outputs:
        result.dtype = INSIDE
    parts = [steps, op("Mul", steps, inputs), into, out]
    new, outputs = scan(call, past, parts, [3] * 4, 1, each_token, 3, [(rates, INSIDE)])
    return call.cast(outputs, INSIDE, x.dtype), new
