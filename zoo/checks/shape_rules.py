"""Running a model on the meta device by the shape rules of :mod:`zoo.ops`.

Torch's own rules for the meta device are Python for most operations, and the first one imports its compiler, which takes as
long as everything else in a check of shapes.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from zoo.ops.operation import Operation, never, operation_of
from zoo.ops.tensor_info import TensorInfo, infos, on_meta


class ShapeRules(TorchFunctionMode):
    """A context in which operations on meta tensors follow their rules; views, sizes and calls without a rule run as they are."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        tensors = list(_tensors((args, named)))
        entry = _entry(func) if _have_shapes_alone(tensors) else None
        result = None if entry is None else _by_rule(entry, infos(args), infos(named))
        if isinstance(result, TensorInfo) and entry is not None and entry.keeps_order:
            return _in_order(result, tensors)
        if isinstance(result, TensorInfo):
            return on_meta(result)
        if isinstance(result, tuple):  # torch's own have names, such as topk's
            return getattr(torch.return_types, func.__name__, tuple)(on_meta(result))
        if hasattr(func, "__wrapped__"):  # a semantic function, whose body follows the rules too
            with self:
                return func.__wrapped__(*args, **named)
        return func(*args, **named)


def _have_shapes_alone(tensors: Sequence[Tensor]) -> bool:
    """Whether the tensors of a call are real numbers on the meta device, of which autograd keeps no record."""
    recorded = torch.is_grad_enabled()
    return bool(tensors) and all(
        tensor.is_meta and not tensor.is_complex() and not (recorded and tensor.requires_grad)
        for tensor in tensors
    )


def _tensors(value: Any) -> Iterator[Tensor]:
    """The tensors in a value."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (dict, tuple, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tensors(item)


def _by_rule(entry: Operation, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The result by the rule of an operation; None for a view, or if the rule refuses, as the error of torch says more."""
    if entry.shares_memory is not never:
        return None
    try:
        return entry.shape(*args, **named)
    except (ValueError, TypeError, IndexError, AttributeError):
        return None


def _in_order(result: TensorInfo, tensors: Sequence[Tensor]) -> Tensor:
    """A tensor with its axes in the order in memory of the first tensor of its shape."""
    like = next((tensor for tensor in tensors if tensor.shape == result.shape), None)
    if like is None or like.is_contiguous():
        return torch.empty(result.shape, dtype=result.dtype, device="meta")
    strides = like.stride()
    order = sorted(range(result.ndim), key=lambda axis: -strides[axis])
    held = torch.empty([result.shape[axis] for axis in order], dtype=result.dtype, device="meta")
    return held.permute([order.index(axis) for axis in range(result.ndim)])


_OPERATORS = {"and": operator.and_, "or": operator.or_, "rsub": operator.sub}
"""Operators whose methods have other names."""


def _entry(func: Any) -> Operation | None:
    """The entry of a function, or of a method or operator by its name."""
    name = getattr(func, "__name__", "").removeprefix("__").removesuffix("__")
    return (
        operation_of(func)
        or operation_of(name)
        or operation_of(_OPERATORS.get(name, getattr(operator, name, None)))
    )
