"""Emitters of functions that move elements without changing them."""

from __future__ import annotations

import operator
from typing import Any

import torch

from exporters.graph.emitters.registry import Call, Operand, emits
from exporters.graph.values import Value
from zoo.ops.indexing import indexed_axes


@emits("unflatten", torch.unflatten, "flatten", torch.flatten)
def _regroup(call: Call, x: Operand, *sizes: Any, **named: Any) -> Value:
    return call.graph.reshape(x.value, call.result.dims)


@emits("view", "reshape", torch.reshape)
def _reshape(call: Call, x: Operand, *shape: Any) -> Value:
    sizes = shape[0] if isinstance(shape[0], tuple | list) else shape
    return call.graph.reshape(x.value, [call.dim(size) for size in sizes])


@emits("contiguous", "clone", "detach")
def _unchanged(call: Call, x: Operand) -> Value:
    return x.value


@emits("transpose", torch.transpose)
def _transpose(call: Call, x: Operand, dim0: int, dim1: int) -> Value:
    order = list(range(x.ndim))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return transposed(call, x.value, order)


def transposed(call: Call, value: Value, order: list[int]) -> Value:
    """Return a value with its axes permuted; a transpose that undoes an earlier one returns the earlier input."""
    node = value.node
    if node is not None and node.op == "Transpose" and node.inputs[0] is not None:
        before: list[int] = node.attributes["perm"]
        if [before[axis] for axis in order] == list(range(len(order))):
            return node.inputs[0]
    result: Value = call.op("Transpose", value, perm=order)
    return result


@emits("permute", torch.permute)
def _permute(call: Call, x: Operand, *dims: Any) -> Value:
    order = dims[0] if isinstance(dims[0], tuple | list) else dims
    return transposed(call, x.value, [axis % x.ndim for axis in order])


@emits("unsqueeze", torch.unsqueeze)
def _unsqueeze(call: Call, x: Operand, dim: int) -> Value:
    return call.op("Unsqueeze", x.value, call.graph.ints(dim % (x.ndim + 1)))


@emits("squeeze", torch.squeeze)
def _squeeze(call: Call, x: Operand, dim: int) -> Value:
    return call.op("Squeeze", x.value, call.graph.ints(dim % x.ndim)) if x.static(dim) == 1 else x.value


@emits("expand")
def _expand(call: Call, x: Operand, *shape: Any) -> Value:
    parts = [call.graph.size(sizes) for sizes in call.result.dims]
    return call.op("Expand", x.value, call.op("Concat", *parts, axis=0))


@emits("split", torch.split, "chunk", torch.chunk)
def _split(call: Call, x: Operand, parts: Any, dim: int = 0) -> tuple[Value, ...]:
    sizes = [Operand(None, pair).static(dim) for pair in zip(*call.result.info, strict=True)]  # type: ignore[arg-type]
    ends = [sum(sizes[: index + 1]) for index in range(len(sizes))]
    axis = call.graph.ints(dim % x.ndim)
    return tuple(
        call.op("Slice", x.value, call.graph.ints(end - size), call.graph.ints(end), axis)
        for size, end in zip(sizes, ends, strict=True)
    )


@emits(torch.cat)
def _cat(call: Call, tensors: Any, dim: int = 0) -> Value:
    present = [tensor for tensor in tensors if tensor.dims[dim] != (0, 0)] or tensors[:1]
    values = [call.value(tensor, call.result.dtype) for tensor in present]
    return values[0] if len(values) == 1 else call.op("Concat", *values, axis=dim)


@emits(torch.stack)
def _stack(call: Call, tensors: Any, dim: int = 0) -> Value:
    axis = dim % (tensors[0].ndim + 1)
    values = [call.value(tensor, call.result.dtype) for tensor in tensors]
    parts = [call.op("Unsqueeze", value, call.graph.ints(axis)) for value in values]
    return call.op("Concat", *parts, axis=axis)


_END = 2**62
"""An end beyond any axis."""


@emits(operator.getitem)
def _getitem(call: Call, x: Operand, index: Any) -> Value:
    """Return an indexed tensor (slices first, then axes that an int drops, then axes that None adds), or one of several
    results."""
    if isinstance(x.info[0], tuple):
        return x.value[index]  # type: ignore[index]
    info, value = x.info[0], x.value
    slices = []
    dropped, added, kept = [], [], 0
    for size, axis, part in indexed_axes(info.shape, index, _in_first_run):
        if axis is None:
            added.append(kept)
        elif size is None:
            slices.append((axis, part, _after(call, part), 1))
            dropped.append(axis)
            continue
        elif (size, size) != x.dims[axis] or part.step not in (None, 1):
            slices.append((axis, part.start or 0, _END if part.stop is None else part.stop, part.step or 1))
        kept += 1
    if slices:
        axes, starts, stops, steps = zip(*slices, strict=True)
        bounds = [call.op("Concat", *map(call.size, ends), axis=0) if _has_sizes(ends) else call.graph.ints(*ends)
                  for ends in (starts, stops)]  # fmt: skip
        value = call.op("Slice", value, *bounds, call.graph.ints(*axes), call.graph.ints(*steps))
    if dropped:
        value = call.op("Squeeze", value, call.graph.ints(*dropped))
    if added:
        value = call.op("Unsqueeze", value, call.graph.ints(*added))
    return value


@emits("narrow", torch.narrow)
def _narrow(call: Call, x: Operand, dim: int, start: Any, length: Any) -> Value:
    axis = dim % x.ndim
    runs = zip(
        *(part.info if isinstance(part, Operand) else (part, part) for part in (start, length)), strict=True
    )
    to_end = tuple(first + count for first, count in runs) == tuple(info.shape[axis] for info in x.info)
    first = call.size(start)
    end = call.graph.ints(_END) if to_end else call.op("Add", first, call.size(length))
    result: Value = call.op("Slice", x.value, first, end, call.graph.ints(axis), call.graph.ints(1))
    return result


def _after(call: Call, index: Any) -> Any:
    if isinstance(index, Operand):
        return call.op("Add", index.value, call.graph.ints(1))
    return _END if index == -1 else index + 1


def _has_sizes(bounds: tuple[Any, ...]) -> bool:
    return any(not isinstance(bound, int) for bound in bounds)


def _in_first_run(part: Any) -> Any:
    if isinstance(part, slice):
        return slice(*map(_in_first_run, (part.start, part.stop, part.step)))
    return part.info[0] if isinstance(part, Operand) else part


@emits("scatter")
def _scatter(call: Call, x: Operand, dim: int, index: Operand, source: Operand) -> Value:
    return call.op("ScatterElements", x.value, index.value, source.value, axis=dim % x.ndim)
