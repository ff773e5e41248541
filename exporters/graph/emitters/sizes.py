"""Emitters of sizes, and of tensors made from sizes and numbers."""

from __future__ import annotations

from typing import Any

import torch

from exporters.graph.emitters.registry import Call, Operand, emits
from exporters.graph.values import Value
from zoo import functional
from zoo.ops.creation import size


@emits(size)
def _size(call: Call, x: Operand, axis: int) -> Value:
    return call.graph.size(call.node.meta["info"], x.value, axis)


@emits(functional.positions_from)
def _positions_from(call: Call, start: Any, length: Any, like: Operand) -> Value:
    first = call.size(start)
    stop = call.size(length) if start == 0 else call.op("Add", first, call.size(length))
    scalars = [call.op("Squeeze", bound) for bound in (first, stop)]
    return call.op("Range", *scalars, call.graph.constant(1, torch.int64))


@emits(functional.most_numbered)
def _most_numbered(call: Call, numbers: Operand) -> Value:
    ints, axes = call.graph.ints, call.graph.ints(*range(numbers.ndim))
    return call.op("Reshape", call.op("ReduceMax", numbers.value, axes, keepdims=1), ints(1))


@emits(functional.constant)
def _constant(call: Call, values: tuple[float, ...], like: Operand) -> Value:
    return call.graph.constant(list(values), call.result.dtype)
