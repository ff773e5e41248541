"""Operations along an axis: sums, maxima, softmax and norms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.nn.functional as F

from zoo.ops.elementwise import same
from zoo.ops.flops import per_element, per_input_element
from zoo.ops.operation import register_operation
from zoo.ops.saved import GradientCall, SavedTensor, saves_all, saves_nothing, saves_result
from zoo.ops.tensor_info import TensorInfo, byte_count, from_front, shapes_of
from zoo.ops.tokens import separate, separate_unless_along


def reduced_axes(rank: int, dim: int | tuple[int, ...] | None) -> list[int]:
    """The axes of a reduction, counted from the front; all for None."""
    axes = range(rank) if dim is None or dim == () else (dim,) if isinstance(dim, int) else dim
    return [from_front(axis, rank) for axis in axes]


def _reduced(x: TensorInfo, dim: Any = None, keepdim: bool = False) -> TensorInfo:
    axes = reduced_axes(x.ndim, dim)
    sizes = (
        (1 if axis in axes else size) for axis, size in enumerate(x.shape) if keepdim or axis not in axes
    )
    return x.with_shape(*sizes)


def _accumulated(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype.is_floating_point else torch.int64


def _sum(x: TensorInfo, dim: Any = None, keepdim: bool = False) -> TensorInfo:
    return TensorInfo(_reduced(x, dim, keepdim).shape, _accumulated(x.dtype))


def _cumsum(x: TensorInfo, dim: int) -> TensorInfo:
    x.axis(dim)
    return TensorInfo(x.shape, _accumulated(x.dtype))


def _topk(
    x: TensorInfo, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[TensorInfo, TensorInfo]:
    axis = x.axis(dim)
    if k > x.shape[axis]:
        raise ValueError(f"topk of {k} exceeds the axis size {x.shape[axis]}")
    values = x.with_shape(*x.shape[:axis], k, *x.shape[axis + 1 :])
    return values, TensorInfo(values.shape, torch.int64)


def _topk_indices(call: GradientCall) -> Iterator[SavedTensor]:
    yield call.make(lambda infos: byte_count(infos[call.node][1]))


def _softmax(x: TensorInfo, dim: int, _stacklevel: int = 3, dtype: torch.dtype | None = None) -> TensorInfo:
    return TensorInfo(x.shape, dtype or x.dtype)


def _norm(x: TensorInfo, normalized_shape: Any, *parameters: Any, **named: Any) -> TensorInfo:
    sizes = tuple(normalized_shape)
    misfits = [shape for shape in shapes_of(*parameters, *named.values()) if shape != sizes]
    if misfits or x.shape[x.ndim - len(sizes) :] != sizes:
        raise ValueError(f"a norm over axes of sizes {sizes} does not fit {[x.shape, *misfits]}")
    return x


def _norm_input(statistics: int, scaled: bool) -> Callable[[GradientCall], Iterable[SavedTensor]]:
    """A rule that saves a norm's input, ``statistics`` float32 numbers per vector, and a computed weight.

    ``scaled``: without a fused kernel, the normalized input that a weight scales is saved too.
    """

    def rule(call: GradientCall) -> Iterator[SavedTensor]:
        x, shape = call.args[:2]
        axes = len(shape)
        yield call.save(x)
        yield call.make(
            lambda infos: (
                4 * statistics * infos[x].with_shape(*infos[x].shape[: infos[x].ndim - axes]).elements
            )
        )
        for weight in call.tensors[1:2]:
            yield call.save(weight)
            if scaled and not call.fused:
                yield call.make(lambda infos: byte_count(infos[call.node]))

    return rule


def _normalized(call: GradientCall) -> Iterator[SavedTensor]:
    """The input, and two numbers per vector: its norm, and the clamped norm that divides it."""
    x, *rest = call.args
    dim = call.node.kwargs.get("dim", rest[1] if len(rest) > 1 else 1)
    yield call.save(x)
    yield call.make(lambda infos: 2 * byte_count(infos[x]) // infos[x].shape[dim])


READS = {"flops": per_input_element, "mixing": separate}

register_operation(torch.sum, "sum", shape=_sum, saved=saves_nothing, **READS)
register_operation(torch.mean, "mean", shape=_reduced, saved=saves_nothing, **READS)
register_operation(torch.amax, "amax", shape=_reduced, saved=saves_all, **READS)
register_operation(torch.topk, "topk", shape=_topk, saved=_topk_indices, **READS)
register_operation(
    torch.cumsum, "cumsum",
    shape=_cumsum, flops=per_input_element, saved=saves_nothing, mixing=separate_unless_along(1),
)  # fmt: skip
SOFTMAX_STEPS = 5
"""The steps of softmax: maximum, subtraction, exponential, sum and division."""

register_operation(
    F.softmax, "softmax",
    shape=_softmax, flops=per_element(SOFTMAX_STEPS), saved=saves_result, mixing=separate_unless_along(1),
)  # fmt: skip
register_operation(
    F.normalize, shape=same, flops=per_element(3), saved=_normalized, mixing=separate_unless_along(2, 1)
)
register_operation(
    F.layer_norm, shape=_norm, flops=per_element(7), saved=_norm_input(2, scaled=False), mixing=separate
)
register_operation(
    F.rms_norm, shape=_norm, flops=per_element(4), saved=_norm_input(1, scaled=True), mixing=separate
)
