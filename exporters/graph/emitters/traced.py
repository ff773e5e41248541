"""PyTorch functions inside an emitter: traced for its values, and written call by call."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import fx, nn

from exporters.graph.builder import GraphBuilder
from exporters.graph.emitters.registry import emit, learn
from exporters.graph.values import Value
from zoo.tracing.symbols import Placeholder, Symbols
from zoo.tracing.tracer import Tracer

ROWS = "rows"
"""The usual name of the dynamic size of an argument."""


class Argument(NamedTuple):
    """A value of the graph with its dtype and sizes, names for dynamic ones."""

    value: Value
    dtype: torch.dtype
    dims: tuple[int | str, ...]


_KEPT = 16
"""The number of traces of one function that are kept, for different sizes of its arguments."""

_traces: WeakKeyDictionary[Callable[..., Any], dict[Hashable, fx.Graph]] = WeakKeyDictionary()


def emit_traced(graph: GraphBuilder, function: Callable[..., Any], *arguments: Argument) -> tuple[Value, ...]:
    """Write the computation of a function of tensors, or of a module without weights, and return its results.

    It depends on nothing but its arguments: all layers and precisions share its trace.
    """
    inputs = tuple(
        Placeholder(f"x{i}", argument.dtype, argument.dims) for i, argument in enumerate(arguments)
    )
    outer = frozenset(number for pair in graph.symbols.values.values() for number in pair)
    kept = _traces.setdefault(function, {})
    traced = kept.get((inputs, outer)) or _traced(function, inputs, outer)
    kept[inputs, outer] = traced
    if len(kept) > _KEPT:
        kept.pop(next(iter(kept)), None)
    inputs_left = iter(arguments)
    held: dict[fx.Node, Any] = {}
    with graph.own_sizes():
        for node in traced.nodes:
            if node.op == "output":
                return tuple(held[result] for result in node.args[0].values())
            held[node] = next(inputs_left).value if node.op == "placeholder" else emit(graph, node, held)
            learn(graph, held[node], node)
    raise AssertionError("a graph without an output")


def _traced(function: Callable[..., Any], inputs: tuple[Placeholder, ...], outer: frozenset[int]) -> fx.Graph:
    """The trace of a function; ``outer`` are the numbers of the symbols around it."""
    static = {dim for argument in inputs for dim in argument.dims if isinstance(dim, int)}

    def call(module: Any, tensors: Any) -> dict[str, Any]:
        results = function(*tensors.values())
        listed = results if isinstance(results, tuple) else (results,)
        return {f"y{i}": result for i, result in enumerate(listed)}

    module = function if isinstance(function, nn.Module) else nn.Module()
    return Tracer(module, Symbols.of(inputs, outer | static)).run(call, inputs)
