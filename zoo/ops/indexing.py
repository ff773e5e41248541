"""Indexing with integers, slices, None and an ellipsis."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from torch import fx

from zoo.ops.flops import no_flops
from zoo.ops.operation import always, register_operation
from zoo.ops.saved import saves_nothing
from zoo.ops.tensor_info import Shape, TensorInfo
from zoo.ops.tokens import separate

_REFUSED = (TensorInfo, list, bool)
_ALL = slice(None)


def _getitem(x: Any, index: Any) -> Any:
    if not isinstance(x, TensorInfo):
        return x[index]
    return x.with_shape(*(size for size, _, _ in indexed_axes(x.shape, index) if size is not None))


def indexed_axes(
    shape: Shape, index: Any, number: Callable[[Any], Any] = lambda part: part
) -> list[tuple[int | None, int | None, Any]]:
    """Yield (size, axis, part) for each axis that an index reads or adds.

    The size is None if an integer drops the axis; the axis is None if None adds one. ``number`` converts a part to plain numbers.

    Raises TypeError, IndexError or ValueError for an index that torch rejects, and for indexing with tensors.
    """
    parts = list(index) if isinstance(index, tuple) else [index]
    used = 0
    for part in parts:
        if isinstance(part, _REFUSED):
            raise TypeError("indexing with a tensor or a list is not traced: use F.embedding to look up rows")
        used += part is not None and part is not Ellipsis
    if used > len(shape):
        raise IndexError(f"{used} indices for a tensor with {len(shape)} axes")
    ellipsis = next((i for i, part in enumerate(parts) if part is Ellipsis), len(parts))
    parts[ellipsis : ellipsis + 1] = [_ALL] * (len(shape) - used)
    result: list[tuple[int | None, int | None, Any]] = []
    axis = 0
    for part in parts:
        if part is None:
            result.append((1, None, None))
            continue
        result.append((_indexed_size(shape[axis], number(part)), axis, part))
        axis += 1
    return result


def _indexed_size(size: int, part: Any) -> int | None:
    """The size of an axis after a slice, or None after an integer."""
    if part is _ALL:
        return size
    if isinstance(part, slice):
        if (part.step or 1) < 1:
            raise ValueError("slice steps must be positive")
        return len(range(*part.indices(size)))
    if not -size <= part < size:
        raise IndexError(f"index {part} is out of range for an axis of size {size}")
    return None


def refuse_clamped_slice(node: fx.Node) -> None:
    """Raise TypeError if a fixed axis is sliced at a symbolic size beyond its end.

    The numbers of symbols in a trace are larger than real sizes, so the clamped result would be wrong.
    """
    x, second = node.args[0].meta["info"]  # type: ignore[union-attr]
    if not isinstance(x, TensorInfo) or len(node.all_input_nodes) == 1:  # every index is a number
        return
    first_index = fx.map_arg(node.args[1], lambda n: n.meta["info"][0])
    second_index = fx.map_arg(node.args[1], lambda n: n.meta["info"][1])
    for (_, axis, part), (_, _, other) in zip(
        indexed_axes(x.shape, first_index), indexed_axes(second.shape, second_index), strict=True
    ):
        if axis is None or part == other or not isinstance(part, slice):
            continue
        if x.shape[axis] != second.shape[axis]:
            continue
        bounds = (
            bound for piece in (part, other) for bound in (piece.start, piece.stop) if bound is not None
        )
        if any(abs(bound) > x.shape[axis] for bound in bounds):
            raise TypeError(
                f"an axis of size {x.shape[axis]} is sliced at a size known only at run time: "
                "use F.embedding to look up rows"
            )


register_operation(
    operator.getitem,
    shape=_getitem, flops=no_flops, saved=saves_nothing, mixing=separate, shares_memory=always,
)  # fmt: skip
