"""The path of the residual stream through a block, from the block's forward.

The forward is traced with the block's parts as single calls.  The remaining calls and sums show where the norms sit and
what each sum adds, for any kind of block.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, signature
from types import MethodType
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx, nn
from torch.fx.proxy import GraphAppendingTracer

from specs.base.words import TIMES, number_text
from zoo.core.facts import STREAM_METHODS
from zoo.ops import target_name

ENCODED = "encoded"
"""The argument of a block's forward that holds the encoder's keys and values."""

RESIDUALS = ("residual", "feed_forward_residual")
"""The names of a block's residual connections."""


@dataclass(frozen=True)
class PathStep:
    """A part that the stream passes: the name of a module of the block, or of a function.

    ``method``: the method of the module, unless its forward, which stands for a module around it too; ``reads_encoder``: whether it also receives the encoder's keys and
    values.
    """

    name: str
    is_module: bool = True
    reads_encoder: bool = False
    method: str = ""


@dataclass(frozen=True)
class Fork:
    """Branches from one point that are summed, or that ``join`` reads; an empty one is the skip connection."""

    ways: tuple[Way, ...]
    join: PathStep | None = None


Way = tuple[PathStep | Fork, ...]


class _Stream(fx.Proxy):
    """A tensor of the stream, in float32, so that casts for mixed precision do not appear."""

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32


class _Parts(GraphAppendingTracer):
    """Traces a block; its parts are single calls, except residual connections and dropout.

    torch.fx's own tracer changes ``nn.Module`` itself meanwhile, for every thread, which takes longer than the trace.
    """

    def trace(self, block: nn.Module) -> fx.Graph:
        """The graph of the block's forward."""
        inputs = signature(block.forward).bind_partial()
        for name, parameter in inputs.signature.parameters.items():
            if parameter.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
                inputs.arguments[name] = self.create_proxy("placeholder", name, (), {})
        calls = list(_calls(block))
        before = [vars(part).get(method) for part, method, _ in calls]
        try:
            for part, method, target in calls:
                vars(part)[method] = partial(self._call, target)
            result = block(*inputs.args, **inputs.kwargs)
        finally:
            for (part, method, _), own in zip(calls, before, strict=True):
                del vars(part)[method]
                if own is not None:
                    vars(part)[method] = own
        self.create_node("output", "output", (self.create_arg(result),), {})
        return self.graph

    def _call(self, path: str, *args: Any, **kwargs: Any) -> Any:
        return self.create_proxy("call_module", path, args, kwargs)

    def create_arg(self, a: Any) -> Any:
        if isinstance(a, torch.Tensor):
            return self.create_node("get_attr", "weight", (), {})
        return super().create_arg(a)

    def proxy(self, node: fx.Node) -> fx.Proxy:
        return _Stream(node, self)


def _calls(block: nn.Module) -> Iterator[tuple[nn.Module, str, str]]:
    """Each module and method that is a single call, and its target: the forwards of parts, and the methods that a module names
    in ``stream_methods``, also where another module keeps one."""
    paths = {module: path for path, module in block.named_modules() if path}
    for module, path in paths.items():
        if not isinstance(module, nn.Dropout | nn.Identity) and path not in RESIDUALS:
            yield module, "forward", path
        for method in STREAM_METHODS.of(module):
            yield module, method, f"{path}:{method}"
        for name, value in vars(module).items():
            if isinstance(value, MethodType) and value.__name__ in STREAM_METHODS.of(value.__self__):
                yield module, name, f"{paths[value.__self__]}:{value.__name__}"


def way_through(block: nn.Module) -> Way | None:
    """The path from a block's first argument to its first result, or None if it has more than calls and sums."""
    try:
        graph = _Parts(fx.Graph()).trace(block)
    except Exception:  # a plugin's block may branch on values, which cannot be traced
        return None
    source = next(node for node in graph.nodes if node.op == "placeholder")
    result = next(node for node in graph.nodes if node.op == "output").args[0]
    return _Reader(source).way(result[0] if isinstance(result, tuple | list) else result)


class _Reader:
    """Reads the paths between nodes that depend on ``source``."""

    def __init__(self, source: fx.Node) -> None:
        self._source = source
        self._doors: dict[fx.Node, list[fx.Node]] = {source: [source]}
        self._calls: dict[tuple[Any, ...], fx.Node] = {}

    def way(self, last: Any) -> Way | None:
        """The path from the source to a value, or None."""
        if not isinstance(last, fx.Node) or not self._followed(self._meant(last)):
            return None
        return self._between(self._source, self._meant(last))

    def _followed(self, node: fx.Node) -> list[fx.Node]:
        """The nodes on every path from the source to this one, both included; empty without a path."""
        if node not in self._doors:
            chains = [chain for source in self._inputs(node) if (chain := self._followed(source))]
            common = [step for step, *others in zip(*chains, strict=False) if all(step is o for o in others)]
            self._doors[node] = [*common, node] if chains else []
        return self._doors[node]

    def _inputs(self, node: fx.Node) -> list[fx.Node]:
        return [self._meant(source) for source in node.all_input_nodes]

    def _meant(self, node: fx.Node) -> fx.Node:
        """The call that computes a value, or a part of it; equal calls are merged."""
        while node.target in (F.dropout, operator.getitem):
            node = node.args[0]  # type: ignore[assignment]
        if node.op != "call_module":
            return node
        return self._calls.setdefault((node.target, *self._inputs(node)), node)

    def _between(self, first: fx.Node, last: fx.Node) -> Way:
        if last is first:
            return ()
        streams = [source for source in self._inputs(last) if self._followed(source)]
        before = self._followed(last)[-2]
        if len(streams) == 1 and not _is_sum(last):
            step, earlier = self._step(last), self._between(first, streams[0])
            return (*(earlier[:-1] if _continues(step, earlier[-1:]) else earlier), step)
        ways = tuple(self._between(before, stream) for stream in streams)
        fork = Fork(tuple(_joined(ways))) if _is_sum(last) else Fork(ways, self._step(last))
        return (*self._between(first, before), fork)

    def _step(self, node: fx.Node) -> PathStep:
        placeholders = {str(source.target) for source in node.all_input_nodes if source.op == "placeholder"}
        name, _, method = (
            str(node.target).partition(":") if node.op == "call_module" else (_function_name(node), "", "")
        )
        return PathStep(name, node.op == "call_module", ENCODED in placeholders, method)


def _continues(step: PathStep, earlier: Way) -> bool:
    """Whether a step is a method of a part of the module before it."""
    (before,) = earlier or (None,)
    return bool(step.method) and isinstance(before, PathStep) and step.name.startswith(f"{before.name}.")


def _is_sum(node: fx.Node) -> bool:
    return node.target in (operator.add, torch.add, "add")


def _function_name(node: fx.Node) -> str:
    """The name of a function; a product with a number names the number."""
    numbers = [argument for argument in node.args if isinstance(argument, int | float)]
    if node.target is operator.mul and numbers:
        return f"{TIMES} {number_text(numbers[0])}"
    return target_name(node.target)


def _joined(ways: tuple[Way, ...]) -> Iterator[Way]:
    """The branches of a sum, with nested sums merged; skip connections stay separate."""
    for way in ways:
        nested = way[0] if len(way) == 1 else None
        if isinstance(nested, Fork) and nested.join is None and () not in (*nested.ways, *ways):
            yield from nested.ways
        else:
            yield way
