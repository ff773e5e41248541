"""ONNX's LSTM, in float32: ONNX Runtime's CPU kernel takes nothing else.

Shapes: batch B, length T, width D, hidden width H.
"""

from __future__ import annotations

import onnx

from exporters.graph.emitters.linear_attention import INSIDE
from exporters.graph.emitters.registry import Call, Operand, emits
from exporters.graph.values import Value
from zoo import functional


@emits(functional.lstm)
def _lstm(
    call: Call,
    x: Operand,
    counts: Operand,
    inputs: tuple[Operand, ...],
    hidden: tuple[Operand, ...],
    biases: tuple[Operand, ...],
) -> Value:
    rows = inputs[0].static(0)
    weights = (
        _together(call, inputs, 2, 4 * rows, inputs[0].static(1)),
        _together(call, hidden, 2, 4 * rows, rows),
        _together(call, biases, 2, 8 * rows),
    )
    first = call.op("Transpose", call.cast(x.value, x.dtype, INSIDE), perm=[1, 0, 2])  # T B D
    lengths = call.op("Cast", counts.value, to=int(onnx.TensorProto.INT32))
    states, *_ = call.op(
        "LSTM",
        first,
        *weights,
        lengths,
        outputs=3,
        omitted=(1, 2),
        direction="bidirectional",
        hidden_size=rows,
    )  # T 2 B H
    together = call.op("Transpose", states, perm=[2, 0, 1, 3])
    batch, length, _ = x.dims
    return call.cast(call.graph.reshape(together, [batch, length, 2 * rows]), INSIDE, x.dtype)


def _together(call: Call, gates: tuple[Operand, ...], *shape: int) -> Value:
    """The weights of all gates as one tensor, which ONNX Runtime computes once, when it loads the graph."""
    stacked = call.op("Concat", *(gate.value for gate in gates), axis=0)
    return call.cast(call.op("Reshape", stacked, call.graph.ints(*shape)), gates[0].dtype, INSIDE)
