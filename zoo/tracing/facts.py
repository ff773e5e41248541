"""Shape and dtype of every traced call, without running it.

One rule per function, found by the function or by the name of the method; a function without a rule is run on
meta tensors.  (Meta kernels alone would do, but the first one costs a second of imports.)
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx

from zoo import functional

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Facts:
    """What a trace knows of a tensor."""

    shape: Shape
    dtype: torch.dtype

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)

    @property
    def device(self) -> torch.device:
        """Nowhere."""
        return torch.device("meta")

    def axis(self, axis: int) -> int:
        """An axis counted from the front."""
        return _from_front(axis, self.ndim)


def _from_front(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise IndexError(f"axis {axis} of a tensor with {rank}")
    return axis % rank


Rule = Callable[..., Any]
_rules: dict[Any, Rule] = {}


def rule(*targets: Any) -> Callable[[Rule], Rule]:
    """Decorator: the rule of these functions and method names."""

    def add(function: Rule) -> Rule:
        _rules.update(dict.fromkeys(targets, function))
        return function

    return add


def facts_of(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The facts of a call's result, from arguments in which tensors are :class:`Facts`."""
    if target in _rules:
        return _rules[target](*args, **kwargs)
    return on_meta(target, args, kwargs)


def has_rule(target: Any) -> bool:
    """Whether a function, or a method by its name, has a rule here."""
    return target in _rules


def on_meta(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The facts of a call's result, found by running it on meta tensors."""

    def tensor(value: Any) -> Any:
        if isinstance(value, Facts):
            return torch.empty(value.shape, dtype=value.dtype, device="meta")
        if isinstance(value, (tuple, list)):
            return type(value)(tensor(item) for item in value)
        return value

    def facts(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return Facts(tuple(value.shape), value.dtype)
        if isinstance(value, (tuple, list)):
            return tuple(facts(item) for item in value)
        return value

    given, named = [tensor(arg) for arg in args], {key: tensor(arg) for key, arg in kwargs.items()}
    with torch.device("meta"):
        result = (
            getattr(given[0], target)(*given[1:], **named)
            if isinstance(target, str)
            else target(*given, **named)
        )
    return facts(result)


# ------------------------------------------------------------------------------------------- element by element


@functools.cache
def _example(dtype: torch.dtype, rank: int) -> torch.Tensor:
    return torch.empty((1,) * rank, dtype=dtype)


def promoted(*values: Any) -> torch.dtype:
    """The dtype in which torch works on one or two values: tensors (as :class:`Facts`), numbers and sizes."""
    examples = [_example(v.dtype, min(v.ndim, 1)) if isinstance(v, Facts) else v for v in values]
    return torch.result_type(examples[0], examples[-1])


def _floating(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype.is_floating_point else torch.get_default_dtype()


def broadcast(*shapes: Shape) -> Shape:
    """The common shape; ValueError where there is none."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            raise ValueError(f"shapes {shapes} do not broadcast")
        result.append(wide.pop() if wide else 1)
    return tuple(result)


def _shapes(*values: Any) -> list[Shape]:
    return [value.shape for value in values if isinstance(value, Facts)]


@rule(torch.add, torch.sub, torch.mul, torch.pow, torch.maximum, torch.minimum, "pow", "add", "sub", "mul")
def _arithmetic(a: Any, b: Any) -> Facts:
    return Facts(broadcast(*_shapes(a, b)), promoted(a, b))


def _or_sizes(function: Callable[..., Any]) -> Rule:
    def apply(*values: Any) -> Any:
        if any(isinstance(value, Facts) for value in values):
            return _arithmetic(*values) if len(values) == 2 else values[0]
        result = function(*values)
        if not isinstance(result, int):
            raise TypeError(
                f"{function.__name__} makes no whole number of a size: use //, or divide a tensor by the size"
            )
        return result

    return apply


for _operator in (operator.add, operator.sub, operator.mul, operator.pow, operator.floordiv, operator.neg):
    _rules[_operator] = _or_sizes(_operator)


@rule(operator.truediv, torch.div, "div")
def _divide(a: Any, b: Any) -> Facts:
    if not _shapes(a, b):
        raise TypeError("a size over a size is no size: use //, or divide a tensor by the size")
    return Facts(broadcast(*_shapes(a, b)), _floating(promoted(a, b)))


@rule(operator.le, operator.lt, operator.ge, operator.gt, operator.eq, operator.ne)
def _compare(a: Any, b: Any) -> Facts:
    if not _shapes(a, b):
        raise TypeError("sizes are compared, which differ from one call to the next")
    return Facts(broadcast(*_shapes(a, b)), torch.bool)


@rule(operator.and_, operator.or_)
def _logic(a: Any, b: Any) -> Facts:
    return Facts(broadcast(*_shapes(a, b)), promoted(a, b))


@rule(F.relu, F.gelu, F.silu, F.dropout, torch.neg, torch.abs, F.layer_norm, F.rms_norm, F.normalize, "abs", "neg",
      "relu", "contiguous")  # fmt: skip
def _same(x: Facts, *args: Any, **kwargs: Any) -> Facts:
    return x


@rule(torch.tanh, torch.sigmoid, torch.exp, torch.sin, torch.cos, torch.rsqrt, torch.sqrt,
      "tanh", "sigmoid", "exp", "sin", "cos", "rsqrt", "sqrt")  # fmt: skip
def _float_function(x: Facts) -> Facts:
    return Facts(x.shape, _floating(x.dtype))


@rule(F.softmax, "softmax")
def _softmax(x: Facts, dim: int, _stacklevel: int = 3, dtype: torch.dtype | None = None) -> Facts:
    return Facts(x.shape, dtype or x.dtype)


@rule(torch.clamp, "clamp")
def _clamp(x: Facts, min: Any = None, max: Any = None) -> Facts:
    bounds = [bound for bound in (min, max) if bound is not None]
    shape = broadcast(x.shape, *_shapes(*bounds))
    return functools.reduce(lambda wide, bound: Facts(shape, promoted(wide, bound)), bounds, x)


@rule(torch.topk, "topk")
def _topk(x: Facts, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Facts, Facts]:
    axis = x.axis(dim)
    if k > x.shape[axis]:
        raise ValueError(f"an axis of {x.shape[axis]} has no {k} largest")
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return Facts(shape, x.dtype), Facts(shape, torch.int64)


@rule("cumsum", torch.cumsum)
def _cumsum(x: Facts, dim: int) -> Facts:
    return x if x.dtype.is_floating_point else Facts(x.shape, torch.int64)


@rule("to", "type")
def _to(
    x: Facts, wanted: torch.dtype | torch.device | Facts | None = None, *, dtype: torch.dtype | None = None
) -> Facts:
    if isinstance(wanted, torch.device):
        return x
    return Facts(x.shape, dtype or (wanted.dtype if isinstance(wanted, Facts) else wanted) or x.dtype)


@rule("float")
def _float(x: Facts) -> Facts:
    return Facts(x.shape, torch.float32)


@rule(torch.where)
def _where(condition: Facts, a: Any, b: Any) -> Facts:
    return Facts(broadcast(*_shapes(condition, a, b)), promoted(a, b))


# ------------------------------------------------------------------------------------------------- rearranging


def _filled(sizes: Shape, total: int) -> Shape | None:
    """Sizes that make up a total, with the one that is -1 worked out; None where they do not."""
    known = math.prod(size for size in sizes if size != -1)
    full = tuple(total // known if size == -1 and known else size for size in sizes)
    return full if math.prod(full) == total and min(full, default=0) >= 0 else None


@rule("unflatten", torch.unflatten)
def _unflatten(x: Facts, dim: int, sizes: Shape) -> Facts:
    axis = x.axis(dim)
    full = _filled(tuple(sizes), x.shape[axis])
    if full is None:
        raise ValueError(f"{x.shape[axis]} does not unflatten to {tuple(sizes)}")
    return Facts(x.shape[:axis] + full + x.shape[axis + 1 :], x.dtype)


@rule("flatten", torch.flatten)
def _flatten(x: Facts, start_dim: int = 0, end_dim: int = -1) -> Facts:
    start, end = x.axis(start_dim), x.axis(end_dim)
    return Facts((*x.shape[:start], math.prod(x.shape[start : end + 1]), *x.shape[end + 1 :]), x.dtype)


@rule("view", "reshape", torch.reshape)
def _reshape(x: Facts, *shape: Any) -> Facts:
    sizes = tuple(shape[0]) if isinstance(shape[0], (tuple, list)) else shape
    full = _filled(sizes, math.prod(x.shape))
    if full is None:
        raise ValueError(f"shape {x.shape} does not reshape to {sizes}")
    return Facts(full, x.dtype)


@rule("expand")
def _expand(x: Facts, *shape: Any) -> Facts:
    sizes = tuple(shape[0]) if isinstance(shape[0], (tuple, list)) else shape
    own = (1,) * (len(sizes) - x.ndim) + x.shape
    misfits = (a not in (1, b) and b != -1 for a, b in zip(own, sizes, strict=False))
    if len(sizes) < x.ndim or any(misfits) or -1 in sizes[: len(sizes) - x.ndim]:
        raise ValueError(f"shape {x.shape} does not expand to {sizes}")
    return Facts(tuple(a if b == -1 else b for a, b in zip(own, sizes, strict=True)), x.dtype)


@rule("transpose", torch.transpose)
def _transpose(x: Facts, dim0: int, dim1: int) -> Facts:
    shape = list(x.shape)
    a, b = x.axis(dim0), x.axis(dim1)
    shape[a], shape[b] = shape[b], shape[a]
    return Facts(tuple(shape), x.dtype)


@rule("permute", torch.permute)
def _permute(x: Facts, *dims: Any) -> Facts:
    order = dims[0] if isinstance(dims[0], (tuple, list)) else dims
    if sorted(x.axis(axis) for axis in order) != list(range(x.ndim)):
        raise ValueError(f"{tuple(order)} is no order of {x.ndim} axes")
    return Facts(tuple(x.shape[axis] for axis in order), x.dtype)


@rule("unsqueeze", torch.unsqueeze)
def _unsqueeze(x: Facts, dim: int) -> Facts:
    axis = _from_front(dim, x.ndim + 1)
    return Facts((*x.shape[:axis], 1, *x.shape[axis:]), x.dtype)


@rule("squeeze", torch.squeeze)
def _squeeze(x: Facts, dim: int) -> Facts:
    axis = x.axis(dim)
    return x if x.shape[axis] != 1 else Facts(x.shape[:axis] + x.shape[axis + 1 :], x.dtype)


@rule(operator.getitem)
def _getitem(x: Any, index: Any) -> Any:
    if not isinstance(x, Facts):
        return x[index]
    return Facts(tuple(size for size, _, _ in indexed(x.shape, index) if size is not None), x.dtype)


def indexed(
    shape: Shape, index: Any, number: Callable[[Any], Any] = lambda part: part
) -> list[tuple[int | None, int | None, Any]]:
    """What an index of ints, slices, None and ... does: (size, axis, part) per axis read or added.

    Raises TypeError, IndexError or ValueError for what torch refuses, and for indexing with tensors.

    The size is None where an int drops the axis, the axis None where None adds one; ``number`` turns a part into
    one of plain numbers.
    """
    parts = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(part, Facts | list | bool) for part in parts):
        raise TypeError("indexing with a tensor or a list is not traced: use F.embedding to look up rows")
    if not any(part is Ellipsis for part in parts):
        parts.append(Ellipsis)
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if used > len(shape):
        raise IndexError(f"{used} indices for a tensor with {len(shape)} axes")
    at = next(place for place, part in enumerate(parts) if part is Ellipsis)
    parts[at : at + 1] = [slice(None)] * (len(shape) - used)
    result: list[tuple[int | None, int | None, Any]] = []
    axis = 0
    for part in parts:
        if part is None:
            result.append((1, None, None))
            continue
        size, plain = None, number(part)
        if isinstance(plain, slice):
            if (plain.step or 1) < 1:
                raise ValueError("a slice must step forward: torch has no negative steps")
            size = len(range(*plain.indices(shape[axis])))
        elif not -shape[axis] <= plain < shape[axis]:
            raise IndexError(f"index {plain} of an axis of {shape[axis]}")
        result.append((size, axis, part))
        axis += 1
    return result


def refuse_clamped(node: fx.Node) -> None:
    """Raise TypeError where a fixed axis is sliced up to a symbolic size beyond its end.

    The numbers that stand for symbols are larger than real ones: what they cut off says nothing.
    """
    x, second = node.args[0].meta["facts"]  # type: ignore[union-attr]
    if not isinstance(x, Facts):
        return
    here = fx.map_arg(node.args[1], lambda n: n.meta["facts"][0])
    there = fx.map_arg(node.args[1], lambda n: n.meta["facts"][1])
    for (_, axis, part), (_, _, other) in zip(
        indexed(x.shape, here), indexed(second.shape, there), strict=True
    ):
        if (
            axis is None
            or part == other
            or not isinstance(part, slice)
            or x.shape[axis] != second.shape[axis]
        ):
            continue
        bounds = (bound for each in (part, other) for bound in (each.start, each.stop) if bound is not None)
        if any(abs(bound) > x.shape[axis] for bound in bounds):
            raise TypeError(
                f"an axis of {x.shape[axis]} is cut at a size known only at run time: look rows up with F.embedding"
            )


@rule(torch.cat)
def _cat(tensors: Any, dim: int = 0) -> Facts:
    first, axis = tensors[0], tensors[0].axis(dim)
    around = {(t.shape[:axis], t.shape[axis + 1 :]) for t in tensors}
    if len(around) > 1:
        raise ValueError(f"shapes {[t.shape for t in tensors]} do not join on axis {dim}")
    total = sum(t.shape[axis] for t in tensors)
    return Facts((*first.shape[:axis], total, *first.shape[axis + 1 :]), _common(tensors))


def _common(tensors: Any) -> torch.dtype:
    return functools.reduce(torch.promote_types, (t.dtype for t in tensors))


@rule("scatter")
def _scatter(x: Facts, dim: int, index: Facts, source: Facts) -> Facts:
    if index.shape != source.shape or x.ndim != index.ndim or x.dtype != source.dtype:
        raise ValueError(
            f"{source.dtype} of shape {source.shape} does not go to places of shape {index.shape}"
        )
    return x


@rule(torch.stack)
def _stack(tensors: Any, dim: int = 0) -> Facts:
    first = tensors[0]
    axis = _from_front(dim, first.ndim + 1)
    if any(t.shape != first.shape for t in tensors):
        raise ValueError(f"shapes {[t.shape for t in tensors]} do not stack")
    return Facts((*first.shape[:axis], len(tensors), *first.shape[axis:]), _common(tensors))


# --------------------------------------------------------------------------------------- reductions, layers


@rule("mean", torch.mean, "amax", torch.amax)
def _mean(x: Facts, dim: Any = None, keepdim: bool = False) -> Facts:
    axes = reduced(x.ndim, dim)
    sizes = (
        (1 if axis in axes else size) for axis, size in enumerate(x.shape) if keepdim or axis not in axes
    )
    return Facts(tuple(sizes), x.dtype)


@rule("sum", torch.sum)
def _sum(x: Facts, dim: Any = None, keepdim: bool = False) -> Facts:
    return Facts(_mean(x, dim, keepdim).shape, x.dtype if x.dtype.is_floating_point else torch.int64)


def reduced(rank: int, dim: int | tuple[int, ...] | None) -> list[int]:
    """The axes of a reduction, counted from the front; all for None."""
    given = range(rank) if dim is None or dim == () else (dim,) if isinstance(dim, int) else dim
    return [_from_front(axis, rank) for axis in given]


@rule(operator.matmul, torch.matmul, "matmul")
def _matmul(a: Facts, b: Facts) -> Facts:
    if min(a.ndim, b.ndim) < 2:
        return on_meta(torch.matmul, (a, b), {})
    if a.shape[-1] != b.shape[-2] or a.dtype != b.dtype:
        raise ValueError(f"{a.dtype} of shape {a.shape} and {b.dtype} of shape {b.shape} do not multiply")
    return Facts((*broadcast(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), a.dtype)


@rule(F.linear)
def _linear(x: Facts, weight: Facts, bias: Facts | None = None) -> Facts:
    if x.shape[-1] != weight.shape[1]:
        raise ValueError(f"a linear layer of {weight.shape[1]} inputs is given {x.shape[-1]}")
    return Facts((*x.shape[:-1], weight.shape[0]), x.dtype)


@rule(F.conv1d, F.conv2d)
def _convolution(
    x: Facts,
    weight: Facts,
    bias: Facts | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Facts:
    axes = weight.ndim - 2
    if x.ndim != weight.ndim:
        raise ValueError(
            f"a convolution over {axes} axes is given {x.ndim}: it needs batch and channels before them"
        )
    if x.shape[1] != weight.shape[1] * groups:
        raise ValueError(f"a convolution of {weight.shape[1] * groups} channels is given {x.shape[1]}")
    steps, around, apart = (per_axis(each, axes) for each in (stride, padding, dilation))
    sizes = tuple(
        (size + 2 * around[i] - apart[i] * (weight.shape[2 + i] - 1) - 1) // steps[i] + 1
        for i, size in enumerate(x.shape[2:])
    )
    if min(sizes) < 1:
        raise ValueError(f"a convolution of shape {weight.shape} does not fit into {x.shape}")
    return Facts((x.shape[0], weight.shape[0], *sizes), x.dtype)


def per_axis(value: Any, axes: int) -> list[int]:
    """An option of a convolution for each axis, from one for all or a list."""
    if isinstance(value, str):
        raise TypeError("a convolution's padding in words is not traced: give numbers")
    return [value] * axes if isinstance(value, int) else [*value]


@rule(F.embedding)
def _embedding(ids: Facts, weight: Facts, **options: Any) -> Facts:
    return Facts((*ids.shape, weight.shape[1]), weight.dtype)


@rule(F.scaled_dot_product_attention)
def _attention(query: Facts, key: Facts, value: Facts, *args: Any, **kwargs: Any) -> Facts:
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"queries, keys and values of shapes {query.shape}, {key.shape}, {value.shape} do not attend"
        )
    return Facts((*query.shape[:-1], value.shape[-1]), query.dtype)


@rule(functional.positions_from)
def _positions_from(start: int, length: int, like: Facts) -> Facts:
    return Facts((length,), torch.int64)


@rule(functional.rounded_to_bfloat16)
def _rounded_to_bfloat16(x: Facts) -> Facts:
    return Facts(x.shape, torch.float32)


@rule(functional.constant)
def _constant(values: tuple[float, ...], like: Facts) -> Facts:
    return Facts((len(values),), torch.int64 if isinstance(values[0], int) else torch.float32)


def node_facts(node: fx.Node, run: int) -> Any:
    """The facts of a node's result in one of the two runs, from those of its arguments."""

    def of(argument: Any) -> Any:
        return fx.map_arg(argument, lambda n: n.meta["facts"][run])

    return facts_of(node.target, of(node.args), of(node.kwargs))
