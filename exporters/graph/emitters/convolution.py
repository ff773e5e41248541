"""Emitters of CausalConvWithState: a causal convolution whose state is the columns before the first window.

Shapes: batch B, tokens T, channels D, width of the window W.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch

from exporters.graph.emitters.padding import TOKENS, if_padded, is_padded
from exporters.graph.emitters.registry import Call, Operand, emits
from exporters.graph.emitters.traced import ROWS, Argument, emit_traced
from exporters.graph.fusing.convolutions import (
    OPERATION,
    branching_convolution,
    causal_conv_with_state,
    padding_moves,
)
from exporters.graph.values import Value
from zoo import functional

PLACES = "places"
"""The name of the number of columns."""


@emits(causal_conv_with_state)
def _causal_conv_with_state(
    call: Call, columns: Operand, weight: Operand, bias: Operand | None, *, activation: str
) -> Value:
    graph, before = call.graph, weight.static(1) - 1
    axis, first, end = graph.ints(2), graph.ints(before), graph.ints(2**62)
    state = call.op("Slice", columns.value, graph.ints(0), first, axis)
    new = call.op("Slice", columns.value, first, end, axis)
    return _convolved(call, new, _windows(call, weight), bias, state, activation)[0]


def _windows(call: Call, weight: Operand) -> Value:
    """D W -> D 1 W."""
    windows: Value = call.op("Unsqueeze", weight.value, call.graph.ints(1))
    return windows


def _convolved(
    call: Call, columns: Value, windows: Value, bias: Operand | None, state: Value, activation: str = "none"
) -> tuple[Value, Value]:
    """Return the results for columns, B D T, and the last W - 1 columns."""
    results: tuple[Value, Value] = call.op(
        OPERATION, columns, windows, None if bias is None else bias.value, state,
        outputs=2, domain=call.graph.target.domain(OPERATION), **({} if activation == "none" else {"activation": activation}),
    )  # fmt: skip
    return results


@emits(padding_moves)
def _padding_moves(call: Call, real: Operand, width: int) -> tuple[Value, Value, Value]:
    graph, padded = call.graph, is_padded(call, real)

    def moved() -> tuple[Value, ...]:
        return emit_traced(graph, _alignment(width), Argument(real.value, real.dtype, (ROWS, TOKENS)))

    def unread() -> list[Value]:
        zeros = (graph.constant(np.zeros((1, size)), torch.int64) for size in (0, 1))
        return [call.op("Identity", part) for part in zeros]

    columns, tokens = if_padded(call, padded, moved, unread, torch.int64)
    return padded, columns, tokens


@cache
def _alignment(width: int) -> Any:
    """:func:`zoo.functional.token_alignment` for a width."""

    def aligned(real: Any) -> Any:
        return functional.token_alignment(real, width)

    return aligned


@emits(branching_convolution)
def _branching_convolution(
    call: Call, x: Operand, weight: Operand, bias: Operand | None, state: Operand, moves: Any
) -> tuple[Value, ...]:
    graph, channels, width = call.graph, weight.static(0), weight.static(1)
    windows = _windows(call, weight)  # outside the branch, so that it is computed once

    def without_padding() -> tuple[Value, ...]:
        columns = call.op("Transpose", x.value, perm=[0, 2, 1])
        result, last = _convolved(call, columns, windows, bias, state.value)
        return call.op("Transpose", result, perm=[0, 2, 1]), last

    if moves is None:
        return without_padding()
    padded, columns, tokens = moves.value
    rows = [
        Argument(x.value, x.dtype, (ROWS, TOKENS, channels)),
        Argument(weight.value, weight.dtype, (channels, width)),
        Argument(state.value, state.dtype, (ROWS, channels, width - 1)),
        Argument(columns, torch.int64, (ROWS, PLACES)),
        Argument(tokens, torch.int64, (ROWS, TOKENS)),
        *([] if bias is None else [Argument(bias.value, bias.dtype, (channels,))]),
    ]
    return if_padded(
        call, padded, lambda: emit_traced(graph, _moved_convolution, *rows), without_padding, x.dtype
    )


def _moved_convolution(x: Any, weight: Any, state: Any, columns: Any, tokens: Any, *bias: Any) -> Any:
    alignment = functional.TokenAlignment(columns, tokens)
    return functional.causal_convolution(x, weight, bias[0] if bias else None, state, alignment)
