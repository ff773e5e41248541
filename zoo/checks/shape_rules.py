"""Running a model on the meta device by the shape rules of :mod:`zoo.ops`.

Torch's own rules for the meta device are Python for most operations, and the first one imports its compiler, which takes as
long as everything else in a check of shapes.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from zoo.ops.operation import Operation, never, operation_of
from zoo.ops.tensor_info import TensorInfo, infos, on_meta


class ShapeRules(TorchFunctionMode):
    """A context in which operations on meta tensors follow their rules; views, sizes and calls without a rule run as they are.

    A result is contiguous, so that every view of it is allowed.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        result = _by_rule(func, infos(args), infos(named)) if _without_values((args, named)) else None
        if isinstance(result, (TensorInfo, tuple)):
            return on_meta(result)
        if hasattr(func, "__wrapped__"):  # a semantic function, whose body follows the rules too
            with self:
                return func.__wrapped__(*args, **named)
        return func(*args, **named)


def _without_values(arguments: Any) -> bool:
    """Whether the tensors of a call are real numbers on the meta device, of which autograd keeps no record."""
    found = list(_tensors(arguments))
    return bool(found) and not any(
        tensor.device.type != "meta"
        or tensor.is_complex()
        or (tensor.requires_grad and torch.is_grad_enabled())
        for tensor in found
    )


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in a value."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (dict, tuple, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tensors(item)


def _by_rule(func: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The result by the rule of a function; None without one, or if it refuses, as the error of torch says more."""
    entry = _entry(func)
    if entry is None or entry.shares_memory is not never:
        return None
    try:
        return entry.shape(*args, **named)
    except (ValueError, TypeError, IndexError, AttributeError):
        return None


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
