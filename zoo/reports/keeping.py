"""What autograd keeps of each traced call until the backward pass.

One rule per function says which of its arguments, or its result, the backward formulas of PyTorch read.  A view keeps
what it is a view of, and a tensor that several calls keep is there once.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx

from zoo import functional
from zoo.reports.trace import Sizes, outputs_by_name
from zoo.tracing.facts import Facts
from zoo.tracing.tracer import PRIMITIVES

_VIEWS = {
    "unflatten", torch.unflatten, "flatten", torch.flatten, "view", "reshape", torch.reshape, "expand", "transpose",
    torch.transpose, "permute", torch.permute, "unsqueeze", torch.unsqueeze, "squeeze", torch.squeeze, "contiguous",
    "chunk", torch.chunk, "split", torch.split, operator.getitem, "detach",
}  # fmt: skip
"""Functions whose result holds on to their argument: views, and copies that stand in its place."""

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


def kept_values(graph: fx.Graph, *, fused: bool) -> list[Kept]:
    """All that is kept of a graph whose parameters are trained, and its outputs; each tensor once.

    ``fused`` says that attention is one kernel, which never keeps its scores, and so is the RMS norm.
    """
    trained = trained_values(graph)
    found: dict[Any, Kept] = {}
    for node in graph.nodes:
        if node not in trained or node.op not in ("call_function", "call_method") or node.target in _VIEWS:
            continue
        for kept in _rules.get(node.target, _all)(_Call(node, trained, fused)):
            if kept.extra is None and kept.value.op == "get_attr":
                continue  # the weights are there anyway
            found.setdefault(kept.value if kept.extra is None else (kept.by, len(found)), kept)
    for result in outputs_by_name(graph).values():
        found.setdefault(root(result), Kept(result, root(result)))
    return list(found.values())


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


def root(value: fx.Node) -> fx.Node:
    """The value whose memory a value is in."""
    while value.op in ("call_function", "call_method") and (
        value.target in _VIEWS or (value.target is F.dropout and not _drops(value))
    ):
        value = value.all_input_nodes[0]
    return value


def _is_float(node: fx.Node) -> bool:
    facts = node.meta["facts"][0] if "facts" in node.meta else None
    first = facts[0] if isinstance(facts, tuple) else facts
    return isinstance(first, Facts) and first.dtype.is_floating_point


def _drops(node: fx.Node) -> bool:
    """Whether a dropout drops anything: F.dropout(x, p, training, inplace)."""
    given = dict(zip(("input", "p", "training"), node.args, strict=False)) | node.kwargs
    return bool(given.get("p", 0.5)) and bool(given.get("training", True))


def _bytes(facts: Any) -> int:
    if isinstance(facts, tuple):
        return sum(map(_bytes, facts))
    return math.prod(facts.shape) * facts.dtype.itemsize if isinstance(facts, Facts) else 0


# ---------------------------------------------------------------------------------------------------------- rules


@dataclass(frozen=True)
class _Call:
    """A call that gradients flow through."""

    node: fx.Node
    trained: set[fx.Node]
    fused: bool

    @property
    def args(self) -> Any:
        """Its arguments, of which tensors and sizes are nodes."""
        return self.node.args

    @property
    def tensors(self) -> list[fx.Node]:
        """The tensors among them."""
        return [given for given in self.node.all_input_nodes if isinstance(given.meta["facts"][0], Facts)]

    def keep(self, value: fx.Node) -> Kept:
        """A value, or what it is a view of."""
        return Kept(self.node, root(value))

    def make(self, size: Callable[[Sizes], int]) -> Kept:
        """A tensor of the call's own."""
        return Kept(self.node, self.node, size)

    def for_gradient(self, wanted: Any, kept: Any) -> Iterator[Kept]:
        """One factor, where the gradient of the other is wanted."""
        if wanted in self.trained and isinstance(kept, fx.Node) and kept in self.tensors:
            yield self.keep(kept)


_Rule = Callable[[_Call], Iterable[Kept]]
_rules: dict[Any, _Rule] = {}


def _keeps(*targets: Any) -> Callable[[_Rule], _Rule]:
    """Decorator: the rule of these functions and method names."""

    def add(rule: _Rule) -> _Rule:
        _rules.update(dict.fromkeys(targets, rule))
        return rule

    return add


def _all(call: _Call) -> Iterator[Kept]:
    """Of a function of which nothing is known: all that it reads and makes."""
    yield from map(call.keep, [*call.tensors, call.node])


@_keeps(operator.add, torch.add, "add", operator.sub, torch.sub, "sub", operator.neg, torch.neg, "neg", torch.cat,
        torch.stack, "to", "type", "float", "sum", torch.sum, "mean", torch.mean, "cumsum", torch.cumsum,
        functional.rounded_to_bfloat16)  # fmt: skip
def _nothing(call: _Call) -> Iterable[Kept]:
    return ()


@_keeps(F.softmax, "softmax", F.relu, "relu", torch.tanh, "tanh", torch.sigmoid, "sigmoid", torch.exp, "exp",
        torch.rsqrt, "rsqrt", torch.sqrt, "sqrt")  # fmt: skip
def _result(call: _Call) -> Iterator[Kept]:
    yield call.keep(call.node)


@_keeps(F.gelu, F.silu, torch.sin, "sin", torch.cos, "cos", torch.abs, "abs", torch.pow, "pow", operator.pow,
        torch.clamp, "clamp")  # fmt: skip
def _arguments(call: _Call) -> Iterable[Kept]:
    return map(call.keep, call.tensors)


@_keeps(torch.where, F.embedding)
def _first(call: _Call) -> Iterator[Kept]:
    """The condition, or the ids."""
    yield call.keep(call.args[0])


@_keeps(F.linear, F.conv1d, F.conv2d)
def _product(call: _Call) -> Iterator[Kept]:
    x, weight = call.args[:2]
    yield from call.for_gradient(x, weight)
    yield from call.for_gradient(weight, x)


@_keeps(operator.mul, torch.mul, "mul")
def _multiply(call: _Call) -> Iterator[Kept]:
    a, b = call.args
    yield from call.for_gradient(a, b)
    yield from call.for_gradient(b, a)


@_keeps(operator.truediv, torch.div, "div")
def _divide(call: _Call) -> Iterator[Kept]:
    a, b = call.args
    yield from call.for_gradient(a, b)
    if b in call.trained:
        yield from (call.keep(each) for each in call.tensors)


@_keeps(operator.matmul, torch.matmul, "matmul")
def _matmul(call: _Call) -> Iterator[Kept]:
    """The factors; one that is repeated along the batch is repeated in memory."""
    batch = call.node.meta["facts"][0].shape[:-2]
    for kept, wanted in (call.args, call.args[::-1]):
        own = kept.meta["facts"][0].shape[:-2]
        if wanted in call.trained:
            yield call.keep(kept) if own in (batch, ()) else _repeated(call, kept)


def _repeated(call: _Call, factor: fx.Node) -> Kept:
    def size(at: Sizes) -> int:
        result, own = at[call.node], at[factor]
        return math.prod(result.shape[:-2]) * math.prod(own.shape[-2:]) * int(own.dtype.itemsize)

    return call.make(size)


@_keeps(F.dropout)
def _dropout(call: _Call) -> Iterator[Kept]:
    """A byte for each value that may be dropped."""
    if _drops(call.node):
        yield call.make(lambda at: math.prod(at[call.node].shape))


@_keeps(torch.topk, "topk")
def _topk(call: _Call) -> Iterator[Kept]:
    yield call.make(lambda at: _bytes(at[call.node][1]))


@_keeps(F.layer_norm, F.rms_norm)
def _norm(call: _Call) -> Iterator[Kept]:
    """What goes in, its statistics, and a weight that is computed; in steps, what is scaled, too."""
    x, shape = call.args[:2]
    vectors, each = len(shape), 4 * _STATISTICS[call.node.target]
    yield call.keep(x)
    yield call.make(lambda at: math.prod(at[x].shape[: at[x].ndim - vectors]) * each)
    yield from (call.keep(weight) for weight in call.tensors[1:2])
    if call.node.target is F.rms_norm and not call.fused:
        yield call.make(lambda at: _bytes(at[call.node]))


@_keeps(F.scaled_dot_product_attention)
def _attention(call: _Call) -> Iterator[Kept]:
    return _in_one(call) if call.fused else _in_steps(call)


def _in_one(call: _Call) -> Iterator[Kept]:
    """Queries, keys, values, mask and result, and the logarithm of the sum of each softmax in float32."""
    yield from map(call.keep, [*call.tensors, call.node])
    yield call.make(lambda at: 4 * math.prod(at[call.node].shape[:-1]))


def _in_steps(call: _Call) -> Iterator[Kept]:
    """Scaled queries and keys, values, and the weights; keys and values repeated for every head."""
    query, key, value = call.args[:3]

    def heads(at: Sizes, each: fx.Node) -> int:
        facts = at[each]
        return math.prod((*at[query].shape[:2], *facts.shape[2:])) * int(facts.dtype.itemsize)

    def weights(at: Sizes) -> int:
        return math.prod((*at[query].shape[:3], at[key].shape[2])) * int(at[query].dtype.itemsize)

    def values(each: fx.Node) -> int:
        return math.prod(each.meta["facts"][0].shape)

    yield call.make(lambda at: heads(at, query))
    yield call.make(lambda at: heads(at, key))
    grouped = query.meta["facts"][0].shape[1] != key.meta["facts"][0].shape[1]
    copied = grouped or values(root(value)) != values(value)
    yield call.make(lambda at: heads(at, value)) if copied else call.keep(value)
    yield call.make(weights)
