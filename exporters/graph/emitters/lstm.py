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
    graph, rows, path = call.graph, inputs[0].static(0), call.graph.path
    weights = [
        call.cast(
            call.op(
                "Reshape", graph.joined(f"{path}.{name}", [part.value for part in parts]), graph.ints(*shape)
            ),
            parts[0].dtype,
            INSIDE,
        )
        for name, parts, shape in (
            ("read", inputs, (2, 4 * rows, inputs[0].static(1))),
            ("kept", hidden, (2, 4 * rows, rows)),
            ("bias", biases, (2, 8 * rows)),
        )
    ]
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
    return call.cast(graph.reshape(together, [batch, length, 2 * rows]), INSIDE, x.dtype)
