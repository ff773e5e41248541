"""Shape and dtype of every traced call, without running it.

One rule per function, found by the function or by the name of the method; a function without a rule is run on
meta tensors.  (Meta kernels alone would do, but the first one costs a second of imports.)
"""

from __future__ import annotations

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
        return axis % len(self.shape)


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
    if not any(isinstance(arg, Facts) for arg in (*args, *kwargs.values())) and callable(target):
        return target(*args, **kwargs)  # arithmetic on sizes
    return _on_meta(target, args, kwargs)


def _on_meta(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
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
    if isinstance(target, str):
        return facts(getattr(given[0], target)(*given[1:], **named))
    return facts(target(*given, **named))


# ------------------------------------------------------------------------------------------- element by element


def _promoted(*values: Any) -> torch.dtype:
    tensors = [value.dtype for value in values if isinstance(value, Facts)]
    dtype = tensors[0]
    for other in tensors[1:]:
        dtype = torch.promote_types(dtype, other)
    has_float = any(isinstance(value, float) for value in values)
    return torch.float32 if has_float and not dtype.is_floating_point else dtype


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


@rule(operator.add, operator.sub, operator.mul, operator.pow, torch.add, torch.sub, torch.mul, torch.pow,
      torch.maximum, torch.minimum, "pow", "add", "sub", "mul")  # fmt: skip
def _arithmetic(a: Any, b: Any) -> Any:
    if not isinstance(a, Facts) and not isinstance(b, Facts):
        raise TypeError("arithmetic on sizes needs an operator")
    return Facts(broadcast(*_shapes(a, b)), _promoted(a, b))


def _or_sizes(function: Callable[..., Any]) -> Rule:
    def apply(a: Any, b: Any) -> Any:
        return _arithmetic(a, b) if isinstance(a, Facts) or isinstance(b, Facts) else function(a, b)

    return apply


for _operator in (operator.add, operator.sub, operator.mul, operator.pow):
    _rules[_operator] = _or_sizes(_operator)


@rule(operator.truediv, torch.div, "div")
def _divide(a: Any, b: Any) -> Any:
    dtype = _promoted(a, b)
    return Facts(broadcast(*_shapes(a, b)), dtype if dtype.is_floating_point else torch.float32)


@rule(operator.le, operator.lt, operator.ge, operator.gt, operator.eq, operator.ne)
def _compare(a: Any, b: Any) -> Facts:
    return Facts(broadcast(*_shapes(a, b)), torch.bool)


@rule(operator.and_, operator.or_)
def _logic(a: Any, b: Any) -> Facts:
    return Facts(broadcast(*_shapes(a, b)), _promoted(a, b))


@rule(F.relu, F.gelu, F.silu, torch.tanh, torch.sigmoid, F.dropout, F.softmax, torch.exp, torch.sin, torch.cos,
      torch.neg, operator.neg, torch.abs, torch.rsqrt, torch.clamp, F.layer_norm, F.rms_norm, torch.sqrt,
      "abs", "neg", "sin", "cos", "tanh", "sigmoid", "exp", "rsqrt", "sqrt", "clamp", "softmax", "relu",
      "contiguous")  # fmt: skip
def _same(x: Facts, *args: Any, **kwargs: Any) -> Facts:
    return x


@rule("cumsum", torch.cumsum)
def _cumsum(x: Facts, dim: int) -> Facts:
    return x if x.dtype.is_floating_point else Facts(x.shape, torch.int64)


@rule("to", "type")
def _to(x: Facts, dtype: torch.dtype) -> Facts:
    return Facts(x.shape, dtype)


@rule("float")
def _float(x: Facts) -> Facts:
    return Facts(x.shape, torch.float32)


@rule(torch.where)
def _where(condition: Facts, a: Any, b: Any) -> Facts:
    return Facts(broadcast(*_shapes(condition, a, b)), _promoted(*(v for v in (a, b) if isinstance(v, Facts))))


# ------------------------------------------------------------------------------------------------- rearranging


@rule("unflatten", torch.unflatten)
def _unflatten(x: Facts, dim: int, sizes: Shape) -> Facts:
    axis = x.axis(dim)
    known = math.prod(size for size in sizes if size != -1)
    full = tuple(x.shape[axis] // known if size == -1 else size for size in sizes)
    if math.prod(full) != x.shape[axis]:
        raise ValueError(f"{x.shape[axis]} does not unflatten to {sizes}")
    return Facts(x.shape[:axis] + full + x.shape[axis + 1 :], x.dtype)


@rule("flatten", torch.flatten)
def _flatten(x: Facts, start_dim: int = 0, end_dim: int = -1) -> Facts:
    start, end = x.axis(start_dim), x.axis(end_dim)
    return Facts((*x.shape[:start], math.prod(x.shape[start : end + 1]), *x.shape[end + 1 :]), x.dtype)


@rule("view", "reshape", torch.reshape)
def _reshape(x: Facts, *shape: Any) -> Facts:
    sizes = tuple(shape[0]) if isinstance(shape[0], (tuple, list)) else shape
    known = math.prod(size for size in sizes if size != -1)
    full = tuple(math.prod(x.shape) // known if size == -1 else size for size in sizes)
    if math.prod(full) != math.prod(x.shape):
        raise ValueError(f"shape {x.shape} does not reshape to {sizes}")
    return Facts(full, x.dtype)


@rule("expand")
def _expand(x: Facts, *shape: Any) -> Facts:
    sizes = tuple(shape[0]) if isinstance(shape[0], (tuple, list)) else shape
    own = (1,) * (len(sizes) - x.ndim) + x.shape
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
    return Facts(tuple(x.shape[axis] for axis in order), x.dtype)


@rule("unsqueeze", torch.unsqueeze)
def _unsqueeze(x: Facts, dim: int) -> Facts:
    axis = dim % (x.ndim + 1)
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

    The size is None where an int drops the axis, the axis None where None adds one; ``number`` turns a part into
    one of plain numbers.
    """
    parts = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(part, Facts) for part in parts):
        raise TypeError("indexing with a tensor is not traced: use F.embedding to look up rows")
    if Ellipsis not in parts:
        parts.append(Ellipsis)
    used = sum(part is not None and part is not Ellipsis for part in parts)
    at = parts.index(Ellipsis)
    parts[at : at + 1] = [slice(None)] * (len(shape) - used)
    result: list[tuple[int | None, int | None, Any]] = []
    axis = 0
    for part in parts:
        if part is None:
            result.append((1, None, None))
            continue
        size = len(range(*number(part).indices(shape[axis]))) if isinstance(part, slice) else None
        result.append((size, axis, part))
        axis += 1
    return result


@rule(torch.cat)
def _cat(tensors: Any, dim: int = 0) -> Facts:
    first = tensors[0]
    axis = first.axis(dim)
    total = sum(tensor.shape[axis] for tensor in tensors)
    return Facts((*first.shape[:axis], total, *first.shape[axis + 1 :]), first.dtype)


@rule(torch.stack)
def _stack(tensors: Any, dim: int = 0) -> Facts:
    first = tensors[0]
    axis = dim % (first.ndim + 1)
    return Facts((*first.shape[:axis], len(tensors), *first.shape[axis:]), first.dtype)


# --------------------------------------------------------------------------------------- reductions, layers


@rule("mean", "sum", torch.mean, torch.sum)
def _reduce(x: Facts, dim: Any, keepdim: bool = False) -> Facts:
    axes = {x.axis(axis) for axis in ((dim,) if isinstance(dim, int) else dim)}
    sizes = ((1 if axis in axes else size) for axis, size in enumerate(x.shape) if keepdim or axis not in axes)
    return Facts(tuple(sizes), x.dtype)


@rule(operator.matmul, torch.matmul, "matmul")
def _matmul(a: Facts, b: Facts) -> Facts:
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"shapes {a.shape} and {b.shape} do not multiply")
    return Facts((*broadcast(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), a.dtype)


@rule(F.linear)
def _linear(x: Facts, weight: Facts, bias: Facts | None = None) -> Facts:
    if x.shape[-1] != weight.shape[1]:
        raise ValueError(f"a linear layer of {weight.shape[1]} inputs is given {x.shape[-1]}")
    return Facts((*x.shape[:-1], weight.shape[0]), x.dtype)


@rule(F.embedding)
def _embedding(ids: Facts, weight: Facts, **options: Any) -> Facts:
    return Facts((*ids.shape, weight.shape[1]), weight.dtype)


@rule(F.scaled_dot_product_attention, functional.attention)
def _attention(query: Facts, key: Facts, value: Facts, *args: Any, **kwargs: Any) -> Facts:
    return Facts((*query.shape[:-1], value.shape[-1]), query.dtype)


@rule(functional.rotary_embedding)
def _rotary(x: Facts, *args: Any, **kwargs: Any) -> Facts:
    return x


@rule(functional.attention_bias)
def _attention_bias(
    key_mask: Facts | None, position_bias: Facts | None, query_length: int, key_length: int, like: Facts, *, causal: bool
) -> Facts | None:
    shapes = _shapes(position_bias)
    shapes += [] if key_mask is None else [(key_mask.shape[0], 1, 1, key_mask.shape[1])]
    shapes += [(query_length, key_length)] if causal else []
    return Facts(broadcast((1, 1, 1, 1), *shapes), like.dtype) if shapes else None


@rule(functional.append)
def _append(past: Facts, new: Facts) -> Facts:
    return _cat((past, new), 2)


@rule(functional.positions_from)
def _positions_from(start: int, length: int, like: Facts) -> Facts:
    return Facts((length,), torch.int64)


@rule(functional.constant)
def _constant(values: tuple[float, ...], like: Facts) -> Facts:
    return Facts((len(values),), torch.int64 if isinstance(values[0], int) else torch.float32)


def node_facts(node: fx.Node, run: int) -> Any:
    """The facts of a node's result in one of the two runs, from those of its arguments."""

    def of(argument: Any) -> Any:
        return fx.map_arg(argument, lambda n: n.meta["facts"][run])

    return facts_of(node.target, of(node.args), of(node.kwargs))
