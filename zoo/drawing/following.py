"""The way of the residual stream through a block, read from the block's own forward.

The forward is traced with the block's parts as single calls.  What is left is calls and sums, from which follows where
the norms sit and what each sum adds, whatever the kind of the block.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx, nn

ENCODED = "encoded"
"""The argument of a block's forward that holds the encoder's keys and values."""


@dataclass(frozen=True)
class Step:
    """A part that the stream passes: the name of a module of the block, or of a function.

    ``reads_encoder`` says that it is given the encoder's keys and values besides.
    """

    name: str
    is_module: bool = True
    reads_encoder: bool = False


@dataclass(frozen=True)
class Fork:
    """Ways that begin at the same point and are added up where they end; one without steps is the stream itself."""

    ways: tuple[Way, ...]


Way = tuple[Step | Fork, ...]


class _Stream(fx.Proxy):
    """A tensor of the stream.  Its dtype is float32: what a block casts in mixed precision is no part of the way."""

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32


class _Parts(fx.Tracer):
    """Traces a block; all its parts are leaves, but for those that only join or drop: residual and dropout."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return not isinstance(m, nn.Dropout | nn.Identity) and module_qualified_name != "residual"

    def proxy(self, node: fx.Node) -> fx.Proxy:
        return _Stream(node, self)


def way_through(block: nn.Module) -> Way | None:
    """The way of a block's first argument to its first result, or None where it is not made of calls and sums alone."""
    try:
        graph = _Parts().trace(block)
    except Exception:  # a block of a plugin may decide by values, which no trace can
        return None
    source = next(node for node in graph.nodes if node.op == "placeholder")
    result = next(node for node in graph.nodes if node.op == "output").args[0]
    return _Reader(source).way(result[0] if isinstance(result, tuple | list) else result)


class _Reader:
    """Reads the ways between nodes that depend on ``source``."""

    def __init__(self, source: fx.Node) -> None:
        self._source = source
        self._doors: dict[fx.Node, list[fx.Node]] = {source: [source]}
        self._calls: dict[tuple[Any, ...], fx.Node] = {}

    def way(self, last: Any) -> Way | None:
        """The way from the source to a value, or None where there is none."""
        if not isinstance(last, fx.Node) or not self._followed(self._meant(last)):
            return None
        return self._between(self._source, self._meant(last))

    def _followed(self, node: fx.Node) -> list[fx.Node]:
        """The nodes that every way from the source to this one passes, both included; none where there is no way."""
        if node not in self._doors:
            chains = [chain for each in self._inputs(node) if (chain := self._followed(each))]
            common = [step for step, *others in zip(*chains, strict=False) if all(step is o for o in others)]
            self._doors[node] = [*common, node] if chains else []
        return self._doors[node]

    def _inputs(self, node: fx.Node) -> list[fx.Node]:
        return [self._meant(each) for each in node.all_input_nodes]

    def _meant(self, node: fx.Node) -> fx.Node:
        """The call that gives a value: the stream is the first of several results, and equal calls are one."""
        while node.target is F.dropout or (node.target is operator.getitem and node.args[1] == 0):
            node = node.args[0]  # type: ignore[assignment]
        if node.op != "call_module":
            return node
        return self._calls.setdefault((node.target, *self._inputs(node)), node)

    def _between(self, first: fx.Node, last: fx.Node) -> Way:
        if last is first:
            return ()
        streams = [each for each in self._inputs(last) if self._followed(each)]
        before = self._followed(last)[-2]
        if len(streams) == 1 and not _is_sum(last):
            return (*self._between(first, streams[0]), self._step(last))
        ways = tuple(self._between(before, each) for each in streams)
        if not _is_sum(last):  # a function of several streams is drawn where they have met
            return (*self._between(first, before), Fork(tuple(_joined(ways))), self._step(last))
        return (*self._between(first, before), Fork(tuple(_joined(ways))))

    def _step(self, node: fx.Node) -> Step:
        placeholders = {str(each.target) for each in node.all_input_nodes if each.op == "placeholder"}
        name = node.target if isinstance(node.target, str) else _function_name(node.target)
        return Step(name, node.op == "call_module", ENCODED in placeholders)


def _is_sum(node: fx.Node) -> bool:
    return node.target in (operator.add, torch.add, "add")


def _function_name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", str(function))


def _joined(ways: tuple[Way, ...]) -> Iterator[Way]:
    """The ways of a sum, where a sum of sums is one; a sum with the stream itself stays as it is written."""
    for way in ways:
        if len(way) == 1 and isinstance(way[0], Fork) and () not in (*way[0].ways, *ways):
            yield from way[0].ways
        else:
            yield way
