"""Operations that reshape, permute, split or join tensors without changing elements."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import torch
from torch import fx

from zoo.ops.flops import no_flops
from zoo.ops.operation import always, register_operation
from zoo.ops.saved import info, saves_all, saves_nothing
from zoo.ops.tensor_info import Shape, TensorInfo, from_front
from zoo.ops.tokens import Mixing, TokenAxes, mixed, separate


def _filled(sizes: Shape, total: int) -> Shape | None:
    """Resolve -1 in sizes that multiply to ``total``; None if they cannot."""
    known = math.prod(size for size in sizes if size != -1)
    full = tuple(total // known if size == -1 and known else size for size in sizes)
    return full if math.prod(full) == total and min(full, default=0) >= 0 else None


def _listed(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sizes or axes from separate arguments or from one list."""
    return tuple(values[0]) if isinstance(values[0], (tuple, list)) else values


def _unflatten(x: TensorInfo, dim: int, sizes: Shape) -> TensorInfo:
    axis = x.axis(dim)
    full = _filled(tuple(sizes), x.shape[axis])
    if full is None:
        raise ValueError(f"cannot unflatten an axis of size {x.shape[axis]} to {tuple(sizes)}")
    return x.with_shape(*x.shape[:axis], *full, *x.shape[axis + 1 :])


def _flatten(x: TensorInfo, start_dim: int = 0, end_dim: int = -1) -> TensorInfo:
    start, end = x.axis(start_dim), x.axis(end_dim)
    return x.with_shape(*x.shape[:start], math.prod(x.shape[start : end + 1]), *x.shape[end + 1 :])


def _reshape(x: TensorInfo, *shape: Any) -> TensorInfo:
    sizes = _listed(shape)
    full = _filled(sizes, x.elements)
    if full is None:
        raise ValueError(f"cannot reshape {x.shape} to {sizes}")
    return x.with_shape(*full)


def _reshape_mixing(node: fx.Node, tokens: TokenAxes) -> Mixing:
    """Tokens do not mix if batch and tokens stay the first two axes."""
    kept = tokens.axis(node) == tokens.axis(node.all_input_nodes[0]) == 1
    return Mixing.SEPARATE if kept else Mixing.MIXED


def _expand(x: TensorInfo, *shape: Any) -> TensorInfo:
    sizes = _listed(shape)
    own = (1,) * (len(sizes) - x.ndim) + x.shape
    misfits = (a not in (1, b) and b != -1 for a, b in zip(own, sizes, strict=False))
    if len(sizes) < x.ndim or any(misfits) or -1 in sizes[: len(sizes) - x.ndim]:
        raise ValueError(f"cannot expand {x.shape} to {sizes}")
    return x.with_shape(*(a if b == -1 else b for a, b in zip(own, sizes, strict=True)))


def _transpose(x: TensorInfo, dim0: int, dim1: int) -> TensorInfo:
    shape = list(x.shape)
    a, b = x.axis(dim0), x.axis(dim1)
    shape[a], shape[b] = shape[b], shape[a]
    return x.with_shape(*shape)


def _permute(x: TensorInfo, *dims: Any) -> TensorInfo:
    order = _listed(dims)
    if sorted(x.axis(axis) for axis in order) != list(range(x.ndim)):
        raise ValueError(f"{order} is not a permutation of {x.ndim} axes")
    return x.with_shape(*(x.shape[axis] for axis in order))


def _unsqueeze(x: TensorInfo, dim: int) -> TensorInfo:
    axis = from_front(dim, x.ndim + 1)
    return x.with_shape(*x.shape[:axis], 1, *x.shape[axis:])


def _squeeze(x: TensorInfo, dim: int) -> TensorInfo:
    axis = x.axis(dim)
    return x if x.shape[axis] != 1 else x.with_shape(*x.shape[:axis], *x.shape[axis + 1 :])


def _parts(x: TensorInfo, sizes: list[int], axis: int) -> tuple[TensorInfo, ...]:
    return tuple(x.with_shape(*x.shape[:axis], size, *x.shape[axis + 1 :]) for size in sizes)


def _split(x: TensorInfo, split_size_or_sections: Any, dim: int = 0) -> tuple[TensorInfo, ...]:
    axis, sections = x.axis(dim), split_size_or_sections
    total = x.shape[axis]
    sizes = (
        [min(sections, total - start) for start in range(0, total, sections)]
        if isinstance(sections, int)
        else [*sections]
    )
    if sum(sizes) != total:
        raise ValueError(f"cannot split an axis of size {total} into {sizes}")
    return _parts(x, sizes or [0], axis)


def _chunk(x: TensorInfo, chunks: int, dim: int = 0) -> tuple[TensorInfo, ...]:
    total = x.shape[x.axis(dim)]
    if not total:
        return _parts(x, [0] * chunks, x.axis(dim))
    return _split(x, -(-total // chunks), dim)


def _narrow(x: TensorInfo, dim: int, start: int, length: int) -> TensorInfo:
    axis = x.axis(dim)
    if not 0 <= start <= start + length <= x.shape[axis]:
        raise ValueError(f"{length} from {start} on are not in an axis of size {x.shape[axis]}")
    return x.with_shape(*x.shape[:axis], length, *x.shape[axis + 1 :])


def _common_dtype(tensors: Any) -> torch.dtype:
    return functools.reduce(torch.promote_types, (t.dtype for t in tensors))


def _cat(tensors: Any, dim: int = 0) -> TensorInfo:
    first, axis = tensors[0], tensors[0].axis(dim)
    around = {(t.shape[:axis], t.shape[axis + 1 :]) for t in tensors}
    if len(around) > 1:
        raise ValueError(f"cannot concatenate shapes {[t.shape for t in tensors]} on axis {dim}")
    total = sum(t.shape[axis] for t in tensors)
    return TensorInfo((*first.shape[:axis], total, *first.shape[axis + 1 :]), _common_dtype(tensors))


def _stack(tensors: Any, dim: int = 0) -> TensorInfo:
    first = tensors[0]
    axis = from_front(dim, first.ndim + 1)
    if any(t.shape != first.shape for t in tensors):
        raise ValueError(f"cannot stack shapes {[t.shape for t in tensors]}")
    return TensorInfo((*first.shape[:axis], len(tensors), *first.shape[axis:]), _common_dtype(tensors))


def _scatter(x: TensorInfo, dim: int, index: TensorInfo, source: TensorInfo) -> TensorInfo:
    if index.shape != source.shape or x.ndim != index.ndim or x.dtype != source.dtype:
        raise ValueError(
            f"cannot scatter {source.dtype} of shape {source.shape} at indices of shape {index.shape} into {x.dtype}"
        )
    return x


def _is_part(x: fx.Node) -> bool:
    """Whether a value is a slice along the last axis."""
    if x.target is not operator.getitem:
        return False
    source = info(x.all_input_nodes[0])
    return isinstance(source, TensorInfo) and info(x).shape[-1] != source.shape[-1]


def _keeps_order(node: fx.Node) -> bool:
    """Whether a reshape is a view; a reshape that joins permuted axes copies, and so does one of a part of each head's vectors."""
    source = node.all_input_nodes[0]
    if source.target == "transpose" and _is_part(source.all_input_nodes[0]):
        return False
    if source.target != "permute":
        return True
    whole = torch.empty(info(source.all_input_nodes[0]).shape, device="meta")
    order: Any = source.args[1:]
    try:
        whole.permute(*order).view(info(node).shape)
    except RuntimeError:
        return False
    return True


VIEW = {"flops": no_flops, "saved": saves_nothing, "shares_memory": always}

register_operation("unflatten", torch.unflatten, shape=_unflatten, mixing=separate, **VIEW)
register_operation(
    "flatten", torch.flatten, shape=_flatten, mixing=separate, **{**VIEW, "shares_memory": _keeps_order}
)
register_operation("view", shape=_reshape, mixing=_reshape_mixing, **VIEW)
register_operation(
    "reshape",
    torch.reshape,
    shape=_reshape,
    mixing=_reshape_mixing,
    **{**VIEW, "shares_memory": _keeps_order},
)
register_operation("expand", shape=_expand, mixing=separate, **VIEW)
register_operation("transpose", torch.transpose, shape=_transpose, mixing=separate, **VIEW)
register_operation("permute", torch.permute, shape=_permute, mixing=separate, **VIEW)
register_operation("unsqueeze", torch.unsqueeze, shape=_unsqueeze, mixing=separate, **VIEW)
register_operation("squeeze", torch.squeeze, shape=_squeeze, mixing=separate, **VIEW)
register_operation("split", torch.split, shape=_split, mixing=separate, **VIEW)
register_operation("narrow", torch.narrow, shape=_narrow, mixing=separate, **VIEW)
register_operation("chunk", torch.chunk, shape=_chunk, mixing=separate, **VIEW)

COPY = {"flops": no_flops, "mixing": separate}

register_operation(torch.cat, shape=_cat, saved=saves_nothing, **COPY)
register_operation(torch.stack, shape=_stack, saved=saves_nothing, **COPY)
register_operation("scatter", shape=_scatter, flops=no_flops, saved=saves_all, mixing=mixed)
