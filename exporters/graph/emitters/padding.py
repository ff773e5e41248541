"""Branches that calls without padding skip."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from exporters.graph.emitters.registry import Call, Operand, emits
from exporters.graph.emitters.traced import ROWS, Argument, emit_traced
from exporters.graph.fusing.last_tokens import last_unless_padded
from exporters.graph.values import Value
from zoo import functional

TOKENS = "tokens"
"""The name of the second dynamic size of an argument."""

Results = Callable[[], Sequence[Value]]


def is_padded(call: Call, real: Operand) -> Value:
    """Whether any token is padding: B T with 0 for padding -> a bool."""
    least = call.op("ReduceMin", call.value(real, torch.int64), keepdims=0)
    padded: Value = call.op("Equal", least, call.graph.constant(0, torch.int64))
    return padded


def if_padded(
    call: Call, padded: Value, with_padding: Results, without: Results, dtype: torch.dtype
) -> tuple[Value, ...]:
    """The results in a dtype of one branch or the other."""
    bodies = []
    for name, results in (("padding", with_padding), ("no_padding", without)):
        with call.graph.body(name) as body:
            body.outputs += results()
        for output in body.outputs:
            output.dtype = dtype
        bodies.append(body)
    then, otherwise = bodies
    count = len(then.outputs)
    chosen = call.op("If", padded, outputs=count, then_branch=then, else_branch=otherwise)
    return chosen if count > 1 else (chosen,)


@emits(last_unless_padded)
def _last_unless_padded(call: Call, x: Operand, mask: Operand) -> Value:
    graph, width = call.graph, x.static(2)
    rows = (
        Argument(x.value, x.dtype, (ROWS, TOKENS, width)),
        Argument(mask.value, mask.dtype, (ROWS, TOKENS)),
    )

    def last() -> list[Value]:
        return [call.op("Gather", x.value, graph.constant(-1, torch.int64), axis=1)]

    return if_padded(
        call,
        is_padded(call, mask),
        lambda: emit_traced(graph, functional.last_real, *rows),
        last,
        x.dtype,
    )[0]
