"""Changing a traced graph: calls that a target has an operation for take the place of what they mean."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import fx

from zoo.tracing.facts import node_facts
from zoo.tracing.tracer import Meaning

CALLS = ("call_function", "call_method")


def dtype_of(node: fx.Node) -> torch.dtype:
    """The dtype of a traced tensor."""
    dtype: torch.dtype = node.meta["facts"][0].dtype
    return dtype


class Rewriter:
    """A traced graph under change.

    What a replaced node meant stays readable: arguments of meanings are followed to what has taken their place.
    """

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        self._replaced: dict[fx.Node, fx.Node] = {}
        for node in [node for node in graph.nodes if node.op == "get_attr"]:
            next(iter(graph.nodes)).prepend(node)  # so that weights are there wherever a call is put

    def current(self, node: Any) -> Any:
        """A node, or what has taken its place."""
        while node in self._replaced:
            node = self._replaced[node]
        return node

    def meaning(self, node: Any, function: Callable[..., Any]) -> Meaning | None:
        """The call of a function of :mod:`zoo.functional` that a node is the result of, or None."""
        if not isinstance(node, fx.Node):
            return None
        found: list[Meaning] = node.meta.get("meanings", [])
        meaning = next((meaning for meaning in found if meaning.function is function), None)
        if meaning is None:
            return None
        args = fx.node.map_aggregate(meaning.args, self.current)
        kwargs = fx.node.map_aggregate(meaning.kwargs, self.current)
        return Meaning(function, args, dict(kwargs))

    def calls(self, target: Any) -> Iterator[fx.Node]:
        """The calls of a function or method, in order; they may be replaced meanwhile."""
        yield from [node for node in self.graph.nodes if node.op in CALLS and node.target == target]

    def meant(self, function: Callable[..., Any]) -> Iterator[tuple[fx.Node, Meaning]]:
        """The results of a function of :mod:`zoo.functional`, in order; they may be replaced meanwhile."""
        for node in list(self.graph.nodes):
            if (meaning := self.meaning(node, function)) is not None:
                yield node, meaning

    def insert(
        self, before: fx.Node, target: Any, *args: Any, path: str | None = None, **kwargs: Any
    ) -> fx.Node:
        """A new call in front of a node, of the same module unless ``path`` names another."""
        with self.graph.inserting_before(before):
            kind = "call_method" if isinstance(target, str) else "call_function"
            node = self.graph.create_node(kind, target, args, kwargs)
        node.meta["path"] = before.meta.get("path", "") if path is None else path
        node.meta["facts"] = (node_facts(node, 0), node_facts(node, 1))
        return node

    def take(self, before: fx.Node, results: fx.Node, index: int) -> fx.Node:
        """One of several results."""
        return self.insert(before, operator.getitem, results, index, path=results.meta["path"])

    def replace(self, old: fx.Node, new: fx.Node) -> None:
        """Put a node into the place of another."""
        old.replace_all_uses_with(new)
        self._replaced[old] = new

    def finish(self) -> None:
        """Drop what nothing needs any more."""
        for node in reversed(self.graph.nodes):
            if not node.users and node.op not in ("placeholder", "output"):
                self.graph.erase_node(node)
