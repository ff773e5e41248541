"""Operations of two operands, element by element: tensors, numbers and sizes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch

from zoo.ops.flops import per_element
from zoo.ops.operation import register_operation
from zoo.ops.saved import (
    GradientCall,
    SavedTensor,
    saves_all,
    saves_first,
    saves_nothing,
    saves_other_factor,
    saves_tensors,
)
from zoo.ops.tensor_info import TensorInfo, broadcast, floating, promoted, shapes_of
from zoo.ops.tokens import separate


def _arithmetic(a: Any, b: Any) -> TensorInfo:
    return TensorInfo(broadcast(*shapes_of(a, b)), promoted(a, b))


def _or_sizes(function: Callable[..., Any]) -> Callable[..., Any]:
    """The shape rule of an operator that also computes sizes."""

    def apply(*values: Any) -> Any:
        if shapes_of(*values):
            return _arithmetic(*values) if len(values) == 2 else values[0]
        result = function(*values)
        if not isinstance(result, int):
            raise TypeError(
                f"{function.__name__} of a size must give an integer: use //, or divide a tensor by the size"
            )
        return result

    return apply


def _divide(a: Any, b: Any) -> TensorInfo:
    if not shapes_of(a, b):
        raise TypeError("dividing two sizes must give an integer: use //, or divide a tensor by the size")
    return TensorInfo(broadcast(*shapes_of(a, b)), floating(promoted(a, b)))


def _compare(a: Any, b: Any) -> TensorInfo:
    if not shapes_of(a, b):
        raise TypeError("sizes cannot be compared: they differ between calls")
    promoted(a, b)  # a comparison with None or a text is none of elements
    return TensorInfo(broadcast(*shapes_of(a, b)), torch.bool)


def _where(condition: TensorInfo, a: Any, b: Any) -> TensorInfo:
    return TensorInfo(broadcast(*shapes_of(condition, a, b)), promoted(a, b))


def _quotient(call: GradientCall) -> Iterator[SavedTensor]:
    a, b = call.args
    yield from call.save_for_gradient(a, b)
    if b in call.trained:
        yield from (call.save(tensor) for tensor in call.tensors)


ONE = {"flops": per_element(), "mixing": separate, "keeps_order": True}

for _operator in (operator.add, operator.sub, operator.neg):
    register_operation(_operator, shape=_or_sizes(_operator), saved=saves_nothing, **ONE)
register_operation(torch.add, "add", torch.sub, "sub", shape=_arithmetic, saved=saves_nothing, **ONE)

register_operation(operator.mul, shape=_or_sizes(operator.mul), saved=saves_other_factor, **ONE)
register_operation(torch.mul, "mul", shape=_arithmetic, saved=saves_other_factor, **ONE)

register_operation(operator.truediv, torch.div, "div", shape=_divide, saved=_quotient, **ONE)
register_operation(operator.floordiv, shape=_or_sizes(operator.floordiv), saved=saves_nothing, **ONE)

register_operation(operator.pow, shape=_or_sizes(operator.pow), saved=saves_tensors, **ONE)
register_operation(torch.pow, "pow", shape=_arithmetic, saved=saves_tensors, **ONE)

register_operation(torch.maximum, torch.minimum, shape=_arithmetic, saved=saves_all, **ONE)
register_operation(
    operator.le, operator.lt, operator.ge, operator.gt, operator.eq, operator.ne,
    shape=_compare, saved=saves_nothing, **ONE,
)  # fmt: skip
register_operation(operator.and_, operator.or_, shape=_arithmetic, saved=saves_nothing, **ONE)
register_operation(torch.where, shape=_where, saved=saves_first, **ONE)
