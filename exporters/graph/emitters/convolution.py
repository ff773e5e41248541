"""Emitter of CausalConvWithState: a causal convolution whose state is the columns before the first window."""

from __future__ import annotations

from exporters.graph.emitters.registry import Call, Operand, emits
from exporters.graph.fusing.convolutions import OPERATION, causal_conv_with_state
from exporters.graph.values import Value


@emits(causal_conv_with_state)
def _causal_conv_with_state(
    call: Call, columns: Operand, weight: Operand, bias: Operand | None, *, activation: str
) -> Value:
    graph, before = call.graph, weight.static(1) - 1
    axis, first, end = graph.ints(2), graph.ints(before), graph.ints(2**62)
    state = call.op("Slice", columns.value, graph.ints(0), first, axis)
    new = call.op("Slice", columns.value, first, end, axis)
    windows = call.op("Unsqueeze", weight.value, graph.ints(1))
    result, _ = call.op(
        OPERATION, new, windows, None if bias is None else bias.value, state,
        outputs=2, domain=graph.target.domain(OPERATION), **({} if activation == "none" else {"activation": activation}),
    )  # fmt: skip
    return result
