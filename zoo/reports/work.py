"""What a traced call computes: matrix products and element operations, in FLOPs.

A matrix product of m x k and k x n is 2 m n k FLOPs.  An element operation is one for each element of a result; a
reduction has one for each element that it reads, and a function of several steps as many as it has steps.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx

from zoo import functional
from zoo.tracing.facts import Facts, has_rule, on_meta
from zoo.tracing.tracer import size


@dataclass(frozen=True)
class Work:
    """FLOPs of matrix products, and of operations element by element."""

    products: int = 0
    elements: int = 0


NOTHING = Work()

Rule = Callable[..., Work]
"""From the facts of the result and of the arguments."""

_STEPS = {F.softmax: 5, "softmax": 5, F.layer_norm: 7, F.rms_norm: 4, F.normalize: 3}
"""Steps per element: softmax finds the largest, subtracts it, exponentiates, adds up and divides; and so on."""

_REDUCTIONS = {
    "sum",
    torch.sum,
    "mean",
    torch.mean,
    "amax",
    torch.amax,
    "cumsum",
    torch.cumsum,
    "topk",
    torch.topk,
}

_MOVES = {
    size, operator.getitem, "unflatten", torch.unflatten, "flatten", torch.flatten, "view", "reshape", torch.reshape,
    "expand", "transpose", torch.transpose, "permute", torch.permute, "unsqueeze", torch.unsqueeze, "squeeze",
    torch.squeeze, torch.cat, torch.stack, "scatter", "chunk", torch.chunk, "split", torch.split, "contiguous", "clone",
    "detach", "to", "type", "float", F.embedding, F.dropout, functional.positions_from, functional.constant, functional.rounded_to_bfloat16,
}  # fmt: skip
"""Functions that compute nothing: they rearrange, look up, copy, or change the dtype."""


def work_at(node: fx.Node, sizes: Mapping[fx.Node, Any]) -> Work:
    """The work of a call, from the facts of every value at some sizes."""
    target, result = node.target, sizes[node]
    if not isinstance(result, Facts | tuple) or target in _MOVES:
        return NOTHING
    args: Any = fx.map_arg(node.args, sizes.__getitem__)
    kwargs: Any = fx.map_arg(node.kwargs, sizes.__getitem__)
    if target in _RULES:
        return _RULES[target](result, *args, **kwargs)
    if target in _REDUCTIONS:
        return Work(elements=math.prod(args[0].shape))
    made = _elements(result) * _STEPS.get(target, 1)
    return Work(0 if has_rule(target) else _counted(target, args, kwargs), made)


def products_at(node: fx.Node, sizes: Mapping[fx.Node, Any]) -> int:
    """FLOPs of a call's matrix products."""
    return work_at(node, sizes).products


def elements_at(node: fx.Node, sizes: Mapping[fx.Node, Any]) -> int:
    """A call's operations element by element."""
    return work_at(node, sizes).elements


def _elements(result: Any) -> int:
    if isinstance(result, tuple):
        return sum(map(_elements, result))
    return math.prod(result.shape) if isinstance(result, Facts) else 0


def _counted(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Matrix products that torch counts in a function of which nothing is known here, at these sizes."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        on_meta(target, args, kwargs)
    return int(counter.get_total_flops())


def _linear(result: Facts, x: Facts, weight: Facts, bias: Facts | None = None) -> Work:
    made = math.prod(result.shape)
    return Work(2 * made * weight.shape[1], made if bias is not None else 0)


def _matmul(result: Facts, a: Facts, b: Facts) -> Work:
    return Work(2 * math.prod(result.shape) * a.shape[-1])


def _convolution(
    result: Facts, x: Facts, weight: Facts, bias: Facts | None = None, *rest: Any, **options: Any
) -> Work:
    made = math.prod(result.shape)
    return Work(2 * made * math.prod(weight.shape[1:]), made if bias is not None else 0)


def _attention(
    result: Facts,
    query: Facts,
    key: Facts,
    value: Facts,
    attn_mask: Facts | None = None,
    *rest: Any,
    **options: Any,
) -> Work:
    """softmax(scale * query @ key^T + mask) @ value."""
    scores = math.prod(query.shape[:-1]) * key.shape[-2]
    steps = 1 + (attn_mask is not None) + _STEPS[F.softmax]
    return Work(2 * scores * (query.shape[-1] + value.shape[-1]), scores * steps)


_RULES: dict[Any, Rule] = {
    F.linear: _linear,
    operator.matmul: _matmul,
    torch.matmul: _matmul,
    "matmul": _matmul,
    F.conv1d: _convolution,
    F.conv2d: _convolution,
    F.scaled_dot_product_attention: _attention,
}
