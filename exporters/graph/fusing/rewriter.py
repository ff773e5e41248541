"""Rewriting of a traced graph."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import fx

from zoo.ops.operation import CALLS
from zoo.tracing.tracer import SemanticCall, node_infos


def dtype_of(node: fx.Node) -> torch.dtype:
    """The dtype of a traced tensor."""
    dtype: torch.dtype = node.meta["info"][0].dtype
    return dtype


class Rewriter:
    """A traced graph being rewritten.

    Semantic calls of replaced nodes stay readable: their arguments resolve to the replacements.
    """

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        self._replaced: dict[fx.Node, fx.Node] = {}
        self._results = [node for node in graph.nodes if "semantic_calls" in node.meta]
        for node in [node for node in graph.nodes if node.op == "get_attr"]:
            next(iter(graph.nodes)).prepend(node)  # so that weights precede every inserted call

    def current(self, node: Any) -> Any:
        """Return a node, or its replacement."""
        while node in self._replaced:
            node = self._replaced[node]
        return node

    def semantic_call(self, node: Any, function: Callable[..., Any]) -> SemanticCall | None:
        """Return the semantic call that a node is the result of, or None."""
        if not isinstance(node, fx.Node):
            return None
        calls: list[SemanticCall] = node.meta.get("semantic_calls", [])
        call = next((call for call in calls if call.function is function), None)
        if call is None:
            return None
        args = fx.node.map_aggregate(call.args, self.current)
        kwargs = fx.node.map_aggregate(call.kwargs, self.current)
        return SemanticCall(function, args, dict(kwargs), call.index)

    def calls(self, target: Any) -> Iterator[fx.Node]:
        """The calls of a function or method, in order; they may be replaced during iteration."""
        yield from [node for node in self.graph.nodes if node.op in CALLS and node.target == target]

    def semantic_calls(self, function: Callable[..., Any]) -> Iterator[tuple[fx.Node, SemanticCall]]:
        """The results of a semantic function, in order; they may be replaced during iteration."""
        for node in self._results:
            if (call := self.semantic_call(node, function)) is not None:
                yield node, call

    def insert(
        self, before: fx.Node, target: Any, *args: Any, path: str | None = None, **kwargs: Any
    ) -> fx.Node:
        """Insert a call before a node, in the same module unless ``path`` names another."""
        with self.graph.inserting_before(before):
            kind = "call_method" if isinstance(target, str) else "call_function"
            node = self.graph.create_node(kind, target, args, kwargs)
        node.meta["path"] = before.meta.get("path", "") if path is None else path
        node.meta["info"] = node_infos(node)
        return node

    def take(self, before: fx.Node, results: fx.Node, index: int) -> fx.Node:
        """Return one of several results."""
        return self.insert(before, operator.getitem, results, index, path=results.meta["path"])

    def replace(self, old: fx.Node, new: fx.Node) -> None:
        """Replace a node by another."""
        old.replace_all_uses_with(new)
        self._replaced[old] = new

    def remove_unused(self) -> None:
        """Remove unused nodes."""
        for node in reversed(self.graph.nodes):
            if not node.users and node.op not in ("placeholder", "output"):
                self.graph.erase_node(node)
        left = set(self.graph.nodes)
        self._results = [node for node in self._results if node in left]
