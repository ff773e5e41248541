"""Running a model on the meta device by the shape rules of :mod:`zoo.ops`.

Torch's own rules for the meta device are Python for most operations, and the first one imports its compiler, which takes as
long as everything else in a check of shapes.
"""

from __future__ import annotations

import operator
from typing import Any

from torch.overrides import TorchFunctionMode

from zoo.ops.operation import Operation, never, operation_of
from zoo.ops.tensor_info import infos, on_meta


class ShapeRules(TorchFunctionMode):
    """A context in which operations on meta tensors follow their rules, and views, or calls without a rule, run as they are.

    A result is contiguous, so that every view of it is allowed.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named, entry = kwargs or {}, _entry(func)
        if entry is not None and entry.shares_memory is never:
            try:
                return on_meta(entry.shape(*infos(args), **infos(named)))
            except (ValueError, TypeError, IndexError, AttributeError):
                return func(*args, **named)  # whose error says more, if it is one
        if hasattr(func, "__wrapped__"):  # a semantic function, whose body follows the rules too
            with self:
                return func.__wrapped__(*args, **named)
        return func(*args, **named)


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
