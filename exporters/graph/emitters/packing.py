"""Emitters that remove the padding between tokens, and restore it."""

from __future__ import annotations

import torch

from exporters.graph.emitters.registry import Call, Operand, emits
from exporters.graph.fusing.functions import pack, taken_tokens, token_rows, unpack, unpack_or_zero
from exporters.graph.values import Value


def _taken(call: Call, mask: Operand) -> Value:
    """Return whether the token at each position is packed: B T."""
    real = call.op("Not", call.op("Equal", mask.value, call.graph.constant(0, mask.dtype)))
    most = call.op("ReduceMax", call.cast(real, torch.bool, torch.int64), call.graph.ints(1), keepdims=1)
    return call.op("Or", real, call.op("Equal", most, call.graph.constant(0, torch.int64)))


def _counted(call: Call, mask: Operand) -> tuple[Value, Value]:
    """Return whether each position is packed, 0 or 1, and the number of packed tokens up to it: (B T) each."""
    taken = call.graph.reshape(call.cast(_taken(call, mask), torch.bool, torch.int64), [-1])
    return taken, call.op("CumSum", taken, call.graph.constant(0, torch.int64))


@emits(taken_tokens)
def _taken_tokens(call: Call, mask: Operand) -> Value:
    return call.op("Transpose", call.op("NonZero", call.graph.reshape(_taken(call, mask), [-1])), perm=[1, 0])


@emits(token_rows)
def _token_rows(call: Call, mask: Operand) -> Value:
    rows = call.op("Sub", _counted(call, mask)[1], call.graph.constant(1, torch.int64))
    return call.graph.reshape(rows, mask.dims)


@emits(pack)
def _pack(call: Call, x: Operand, tokens: Operand) -> Value:
    return call.op("Gather", _flat(call, x), tokens.value, axis=0)


@emits(unpack)
def _unpack(call: Call, x: Operand, rows: Operand, *, part: int = 0, parts: int = 1) -> Value:
    """Return the unpacked tokens. Each part is gathered as a separate row, without slicing."""
    if parts == 1:
        return call.op("Gather", _flat(call, x), rows.value, axis=0)
    flat = call.graph.reshape(x.value, [-1, x.static(-1) // parts])
    first = call.op("Mul", rows.value, call.graph.constant(parts, torch.int64))
    index = first if part == 0 else call.op("Add", first, call.graph.constant(part, torch.int64))
    return call.op("Gather", flat, index, axis=0)


@emits(unpack_or_zero)
def _gather_or_zero(call: Call, x: Operand, mask: Operand) -> Value:
    """Return the unpacked tokens, gathered behind a row of zeros that padding refers to."""
    sizes = call.graph.ints(1, *(x.static(axis) for axis in range(2, x.ndim)))
    zeros = call.op("Expand", call.graph.constant(0, x.dtype), sizes)
    places = call.graph.reshape(call.op("Mul", *_counted(call, mask)), mask.dims)
    return call.op("Gather", call.op("Concat", zeros, _flat(call, x), axis=0), places, axis=0)


def _flat(call: Call, x: Operand) -> Value:
    """Return N 1 ... or B T ... with one axis of tokens."""
    return call.graph.reshape(x.value, [-1, *(x.static(axis) for axis in range(2, x.ndim))])
