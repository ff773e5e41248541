"""Running a model on the meta device by the shape rules of :mod:`zoo.ops`.

Torch's own rules for the meta device are Python for most operations, and the first one imports its compiler, which takes as
long as everything else in a check of shapes.
"""

from __future__ import annotations

import operator
from typing import Any

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
        result = _by_rule(func, infos(args), infos(named))
        if isinstance(result, (TensorInfo, tuple)):
            return on_meta(result)
        if hasattr(func, "__wrapped__"):  # a semantic function, whose body follows the rules too
            with self:
                return func.__wrapped__(*args, **named)
        return func(*args, **named)


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
    name = getattr(func, "__name__", "").strip("_")
    return (
        operation_of(func)
        or operation_of(name)
        or operation_of(_OPERATORS.get(name, getattr(operator, name, None)))
    )
