"""Linear attention with decay: LinearAttention if the target has it, otherwise a Scan over chunks of tokens.

Shapes: batch B, length T, heads H, heads of keys G, heads per head of keys R, key width K, value width V, chunks N of length C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from exporters.graph.emitters.linear_attention import INSIDE, linear_attention
from exporters.graph.emitters.registry import Call, Operand, emits
from exporters.graph.emitters.scans import padded, scan
from exporters.graph.fusing.recurrences import OPERATION
from exporters.graph.values import Value
from zoo import functional
from zoo.functional.matrix_recurrence import CHUNK


@emits(functional.linear_attention)
def _linear_attention(
    call: Call,
    query: Operand,
    key: Operand,
    value: Operand,
    decay: Operand,
    state: Operand | None,
    real: Operand | None,
) -> tuple[Value, Value]:
    if call.graph.target.takes(OPERATION, INSIDE):
        return linear_attention(call, query, key, value, decay, None, state, real)
    return _chunked(call, query, key, value, decay, state, real)


def start_state(call: Call, state: Operand | None, batch: Operand, *sizes: int) -> Value:
    """The state before the first token, B and ``sizes``: zeros if ``state`` is None."""
    if state is not None:
        return call.graph.reshape(state.value, [batch.dims[0], *sizes])
    shape = call.op("Concat", call.graph.size(batch.dims[0], batch.value, 0), call.graph.ints(*sizes), axis=0)
    result: Value = call.op("Expand", call.graph.constant(0.0, INSIDE), shape)
    return result


@dataclass(frozen=True)
class Chunks:
    """Tokens in chunks of equal length (a single chunk if they are few): the count, the length, the padding."""

    call: Call
    count: Value
    length: Value
    padding: Value

    @classmethod
    def of(cls, call: Call, tokens: Value, longest: int) -> Chunks:
        ints, op = call.graph.ints, call.op
        count = op("Div", op("Add", tokens, ints(longest - 1)), ints(longest))
        length = op("Div", op("Sub", op("Add", tokens, count), ints(1)), count)
        return cls(call, count, length, op("Sub", op("Mul", count, length), tokens))

    def split(self, x: Operand, axis: int, before: Sequence[int], after: Sequence[int]) -> Value:
        """The tokens of a tensor in chunks, padded with 0: B ... T ... -> B, ``before``, N, C, ``after``."""
        call, ints = self.call, self.call.graph.ints
        wide = call.cast(x.value, x.dtype, INSIDE)
        whole = padded(call, wide, x.ndim, axis, self.padding, call.graph.constant(0.0, INSIDE))
        shape = call.op("Concat", ints(0, *before), self.count, self.length, ints(*after), axis=0)
        result: Value = call.op("Reshape", whole, shape)
        return result


def _chunked(
    call: Call,
    query: Operand,
    key: Operand,
    value: Operand,
    decay: Operand,
    state: Operand | None,
    real: Operand | None,
) -> tuple[Value, Value]:
    """The body of :func:`zoo.functional.linear_attention`, with chunks of equal length."""
    graph, ints = call.graph, call.graph.ints
    groups, heads, key_width, width = key.static(1), value.static(1), key.static(3), value.static(3)
    repeats = heads // groups
    tokens = graph.size(value.dims[2], value.value, 2)
    chunks = Chunks.of(call, tokens, CHUNK)
    parts = [chunks.split(part, 2, (groups, 1), (key_width,)) for part in (query, key)]  # B G 1 N C K
    parts.append(chunks.split(value, 2, (groups, repeats), (width,)))  # B G R N C V
    parts.append(chunks.split(decay, 2, (groups, repeats), ()))  # B G R N C
    if real is not None:
        mask = chunks.split(real, 1, (1, 1), ())  # B 1 1 N C
        parts[1] = call.op("Mul", parts[1], call.op("Unsqueeze", mask, ints(-1)))
        parts[3] = call.op("Mul", parts[3], mask)
    past = start_state(call, state, value, groups, repeats, key_width, width)
    names = ("state", "query", "key", "value", "decay")
    with graph.body("each_chunk", *((name, INSIDE) for name in names)) as each_chunk:
        results = _one_chunk(call, each_chunk.inputs)
        each_chunk.outputs.extend(results)
    for result in results:
        result.dtype = INSIDE
    new, outputs = scan(call, past, parts, [6, 6, 6, 5], 3, each_chunk, 6)
    joined = call.op("Reshape", outputs, ints(0, heads, -1, width))  # B H (N C) V
    output = call.op("Slice", joined, ints(0), tokens, ints(2))
    return call.cast(output, INSIDE, value.dtype), graph.reshape(
        new, [value.dims[0], heads, key_width, width]
    )


def _one_chunk(call: Call, inputs: Sequence[Value]) -> tuple[Value, Value]:
    """The new state and the output of one chunk: B G R K V and B G R C V."""
    op, ints = call.op, call.graph.ints
    state, query, key, value, decay = inputs
    # Inside the body, because OpenVINO's Scan takes no values from outside.
    length = op("Shape", decay, start=-1)
    ones = op("Expand", call.graph.constant(1.0, INSIDE), op("Concat", length, length, axis=0))
    earlier, seen = (
        op("Trilu", ones, call.graph.constant(diagonal, torch.int64), upper=0) for diagonal in (-1, 0)
    )  # C C: 1 at [t, s] where token s is before token t, or is that token, too
    rows, columns = (call.graph.constant(axis, torch.int64) for axis in (-2, -1))
    steps = op("Mul", op("Unsqueeze", decay, ints(-1)), earlier)  # B G R C C
    between = op("Mul", op("Exp", op("CumSum", steps, rows)), seen)
    before = op("Unsqueeze", op("Exp", op("CumSum", decay, columns)), ints(-1))  # B G R C 1
    across = op("Transpose", key, perm=[0, 1, 2, 4, 3])  # B G 1 K C
    scores = op("Mul", op("MatMul", query, across), between)
    output = op(
        "Add", op("MatMul", scores, value), op("Mul", before, op("MatMul", query, state))
    )  # B G R C V
    last = call.graph.constant(-1, torch.int64)
    rest = op("Mul", op("Unsqueeze", op("Gather", between, last, axis=-2), ints(-1)), value)
    whole = op("Gather", before, ints(-1), axis=-2)  # B G R 1 1
    return op("Add", op("Mul", whole, state), op("MatMul", across, rest)), output
