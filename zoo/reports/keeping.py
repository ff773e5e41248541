"""What autograd keeps of each traced call until the backward pass.

One rule per function says which of its arguments, or its result, the backward formulas of PyTorch read.  A view keeps
what it is a view of, and a tensor that several calls keep is there once.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx

from zoo.reports.trace import Sizes, outputs_by_name
from zoo.tracing.facts import Facts
from zoo.tracing.tracer import PRIMITIVES

_VIEWS = {
    "unflatten", torch.unflatten, "flatten", torch.flatten, "view", "reshape", torch.reshape, "expand", "transpose",
    torch.transpose, "permute", torch.permute, "unsqueeze", torch.unsqueeze, "squeeze", torch.squeeze, "contiguous",
    "chunk", torch.chunk, "split", torch.split, operator.getitem, "detach",
}  # fmt: skip
"""Functions whose result holds on to their argument: views, and copies that stand in its place."""

_NOTHING = {
    operator.add, torch.add, "add", operator.sub, torch.sub, "sub", operator.neg, torch.neg, "neg", torch.cat, torch.stack,
    "to", "type", "float", "sum", torch.sum, "mean", torch.mean, "cumsum", torch.cumsum,
}  # fmt: skip

_RESULT = {
    F.softmax, "softmax", F.relu, "relu", torch.tanh, "tanh", torch.sigmoid, "sigmoid", torch.exp, "exp", torch.rsqrt,
    "rsqrt", torch.sqrt, "sqrt",
}  # fmt: skip

_STATISTICS: dict[Any, int] = {F.layer_norm: 2, F.rms_norm: 1}
"""Norms keep what goes in and some numbers in float32 for each vector: its mean, and one over its deviation."""


@dataclass(frozen=True)
class Kept:
    """A tensor kept for the backward pass: by which call, a value of the graph, or ``extra`` of the call's own making.

    ``extra`` gives its bytes at some sizes, and tells such tensors of one call apart.
    """

    by: fx.Node
    value: fx.Node
    extra: Callable[[Sizes], int] | None = None

    def bytes_at(self, sizes: Sizes) -> int:
        """Its size."""
        return self.extra(sizes) if self.extra else _bytes(sizes[self.value])


@dataclass(frozen=True)
class Keeping:
    """``fused`` says that attention is one kernel, which never keeps its scores, and so is the RMS norm."""

    fused: bool = True

    def of(self, graph: fx.Graph) -> list[Kept]:
        """All that is kept of a graph whose parameters are trained, and its outputs; each tensor once."""
        trained = trained_values(graph)
        found: dict[Any, Kept] = {}
        for node in graph.nodes:
            if node in trained and node.op in ("call_function", "call_method"):
                for kept in self._kept(node, trained):
                    if kept.extra is None and kept.value.op == "get_attr":
                        continue  # the weights are there anyway
                    key = kept.value if kept.extra is None else (kept.by, len(found))
                    found.setdefault(key, kept)
        for result in outputs_by_name(graph).values():
            found.setdefault(root(result), Kept(result, root(result)))
        return list(found.values())

    def _kept(self, node: fx.Node, trained: set[fx.Node]) -> Iterator[Kept]:
        target, args = node.target, _args(node)
        tensors = [arg for arg in node.all_input_nodes if isinstance(arg.meta["facts"][0], Facts)]
        if target in _NOTHING or target in _VIEWS:
            return
        if target in _RESULT:
            yield Kept(node, node)
        elif target in (F.linear, F.conv1d, F.conv2d):
            yield from _other(node, args[0], args[1], trained)
        elif target in (operator.matmul, torch.matmul, "matmul"):
            yield from _factors(node, trained)
        elif target in (operator.mul, torch.mul, "mul"):
            yield from _other(node, args[0], args[1], trained)
            yield from _other(node, args[1], args[0], trained)
        elif target in (operator.truediv, torch.div, "div"):
            yield from (Kept(node, root(each)) for each in tensors[1:])
            if len(tensors) > 1 and tensors[1] in trained:
                yield Kept(node, root(tensors[0]))
        elif target is torch.where or target is F.embedding:
            yield Kept(node, root(args[0]))
        elif target is F.dropout:
            if _drops(node):
                yield Kept(node, node, lambda at: math.prod(at[node].shape))
        elif target in _STATISTICS:
            yield from _norm(node)
            if target is F.rms_norm and not self.fused:
                yield Kept(node, node, lambda at: _bytes(at[node]))  # before it is scaled
        elif target is F.scaled_dot_product_attention:
            yield from _fused(node) if self.fused else _unfused(node, trained)
        elif target in (torch.topk, "topk"):
            yield Kept(node, node, lambda at: _bytes(at[node][1]))
        elif target in (F.gelu, F.silu, torch.sin, "sin", torch.cos, "cos", torch.abs, "abs", torch.pow, "pow",
                        operator.pow, torch.clamp, "clamp"):  # fmt: skip
            yield from (Kept(node, root(each)) for each in tensors)
        else:  # nothing is known of it: all that it reads and makes
            yield from (Kept(node, root(each)) for each in [*tensors, node])


def root(value: fx.Node) -> fx.Node:
    """The value whose memory a value is in."""
    while value.op in ("call_function", "call_method") and (
        value.target in _VIEWS or (value.target is F.dropout and not _drops(value))
    ):
        value = _args(value)[0]
    return value


def _args(node: fx.Node) -> Any:
    return node.args


def _drops(node: fx.Node) -> bool:
    """Whether a dropout drops anything: F.dropout(x, p, training, inplace)."""
    given = dict(zip(("input", "p", "training"), node.args, strict=False)) | node.kwargs
    return bool(given.get("p", 0.5)) and bool(given.get("training", True))


def _bytes(facts: Any) -> int:
    if isinstance(facts, tuple):
        return sum(map(_bytes, facts))
    return math.prod(facts.shape) * facts.dtype.itemsize if isinstance(facts, Facts) else 0


def trained_values(graph: fx.Graph) -> set[fx.Node]:
    """The values through which gradients flow from an output to a parameter."""
    reached = set(outputs_by_name(graph).values())
    for node in reversed(graph.nodes):
        if node in reached and _is_float(node):
            reached.update(node.all_input_nodes)
    trained: set[fx.Node] = set()
    for node in graph.nodes:
        learns = node.op == "get_attr" or (
            node.target not in PRIMITIVES and any(each in trained for each in node.all_input_nodes)
        )
        if learns and node in reached and _is_float(node):
            trained.add(node)
    return trained


def _is_float(node: fx.Node) -> bool:
    facts = node.meta["facts"][0] if "facts" in node.meta else None
    first = facts[0] if isinstance(facts, tuple) else facts
    return isinstance(first, Facts) and first.dtype.is_floating_point


def _other(node: fx.Node, kept: Any, wanted: Any, trained: set[fx.Node]) -> Iterator[Kept]:
    """One factor, which the gradient of the other is made of."""
    if isinstance(kept, fx.Node) and wanted in trained and isinstance(kept.meta["facts"][0], Facts):
        yield Kept(node, root(kept))


def _factors(node: fx.Node, trained: set[fx.Node]) -> Iterator[Kept]:
    """The factors of a matrix product; one that is repeated along the batch is repeated in memory."""
    for kept, other in (_args(node), _args(node)[::-1]):
        if other not in trained:
            continue
        wide, own = node.meta["facts"][0].shape[:-2], kept.meta["facts"][0].shape[:-2]
        if own == wide or len(own) == 0:
            yield Kept(node, root(kept))
        else:
            yield _repeated(node, kept)


def _repeated(node: fx.Node, factor: fx.Node) -> Kept:
    def size(at: Sizes) -> int:
        result, own = at[node], at[factor]
        return math.prod(result.shape[:-2]) * math.prod(own.shape[-2:]) * int(own.dtype.itemsize)

    return Kept(node, factor, size)


def _norm(node: fx.Node) -> Iterator[Kept]:
    x, shape = _args(node)[:2]
    yield Kept(node, root(x))
    vectors, each = len(shape), 4 * _STATISTICS[node.target]
    yield Kept(node, node, lambda at: math.prod(at[node].shape[: at[node].ndim - vectors]) * each)
    weight = node.kwargs.get("weight")
    if isinstance(weight, fx.Node):
        yield Kept(node, root(weight))


def _fused(node: fx.Node) -> Iterator[Kept]:
    """Queries, keys, values, mask and result, and the logarithm of the sum of each softmax in float32."""
    args = _args(node)
    mask = args[3] if len(args) > 3 else node.kwargs.get("attn_mask")
    yield from (Kept(node, root(each)) for each in (*args[:3], mask) if isinstance(each, fx.Node))
    yield Kept(node, node)
    yield Kept(node, node, lambda at: 4 * math.prod(at[node].shape[:-1]))


def _unfused(node: fx.Node, trained: set[fx.Node]) -> Iterator[Kept]:
    """Scaled queries and keys, values, and the weights; keys and values repeated for every head."""
    query, key, value = _args(node)[:3]

    def heads(at: Sizes, each: Any) -> int:
        facts = at[each]
        return math.prod((*at[query].shape[:2], *facts.shape[2:])) * facts.dtype.itemsize

    grouped = query.meta["facts"][0].shape[1] != key.meta["facts"][0].shape[1]
    yield Kept(node, node, lambda at: heads(at, query))
    yield Kept(node, node, lambda at: heads(at, key))
    whole = math.prod(root(value).meta["facts"][0].shape) == math.prod(value.meta["facts"][0].shape)
    yield Kept(node, root(value)) if whole and not grouped else Kept(node, node, lambda at: heads(at, value))
    yield Kept(
        node, node, lambda at: math.prod((*at[query].shape[:3], at[key].shape[2])) * at[query].dtype.itemsize
    )
