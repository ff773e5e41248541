"""Shapes in a traced graph, with numbers for its symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from torch import fx

from zoo.ops import TensorInfo, result_info
from zoo.tracing.symbols import Placeholder, size_of
from zoo.tracing.tracer import is_static

Number = TypeVar("Number")

Partition = tuple[int, ...]
"""For each point the index of its class; classes are numbered in the order of their first points."""


class SizedGraph:
    """TensorInfo, size or tuple of every value except the outputs at each point: with numbers for the symbols in the inputs' dims.

    A value is worked out once for the points at which the arguments of its call are equal, since most depend on few of the
    symbols, and a call once for equal arguments, since layers repeat one another. ``by_point`` has the values at each point, and
    ``same_call`` the first call with the function and the arguments of a call, at every point.
    """

    def __init__(
        self, graph: fx.Graph, inputs: Sequence[Placeholder], points: Sequence[Mapping[str, int]]
    ) -> None:
        placeholders = {placeholder.name: placeholder for placeholder in inputs}
        self.same_call: dict[fx.Node, fx.Node] = {}
        self._columns: dict[fx.Node, _Column] = {}
        self._arguments: dict[fx.Node, _Arguments] = {}
        self._joined: dict[tuple[Partition, ...], tuple[Partition, list[int]]] = {}
        self._infos: dict[tuple[type, Any], Any] = {}
        self._same_value: dict[fx.Node, fx.Node] = {}
        self._first_with: dict[tuple[Any, ...], fx.Node] = {}
        self._calls: dict[tuple[Any, str, str], fx.Node] = {}
        apart, everywhere = tuple(range(len(points))), (0,) * len(points)
        for node in graph.nodes:
            match node.op:
                case "placeholder":
                    placeholder = placeholders[str(node.target)]
                    shapes = [tuple(size_of(dim, numbers) for dim in placeholder.dims) for numbers in points]
                    self._keep(node, [TensorInfo(shape, placeholder.dtype) for shape in shapes], apart)
                case "get_attr":
                    self._keep(node, [node.meta["info"][0]], everywhere)
                case "call_function" | "call_method":
                    self._work_out(node, everywhere)
        self.by_point = [_Point(self._columns, index) for index in apart]

    def once_each(
        self, call: fx.Node, reading: Callable[[fx.Node, Mapping[fx.Node, Any]], Number]
    ) -> list[Number]:
        """A reading of the arguments and the result of a call that is its own ``same_call``, at each point."""
        arguments = self._arguments[call]
        results = [reading(call, infos) for infos in arguments.infos]
        return [results[index] for index in arguments.partition]

    def map_infos(self, mapped: Callable[[Any], Any]) -> None:
        """Replace every info, such as by one with another dtype."""
        for node, column in self._columns.items():
            self._columns[node] = _Column(tuple(map(mapped, column.infos)), column.partition)

    def _work_out(self, node: fx.Node, everywhere: Partition) -> None:
        """Keep the results of a call; an earlier call with the same arguments has the same."""
        operands, args, kwargs = node.all_input_nodes, node.args, node.kwargs
        if any(self._same_value[operand] is not operand for operand in operands):
            args, kwargs = fx.map_arg((args, kwargs), self._same_value.__getitem__)
        first = self._calls.setdefault((node.target, repr(args), repr(kwargs)), node)
        self.same_call[node] = first
        if first is not node:
            self._columns[node], self._same_value[node] = self._columns[first], self._same_value[first]
            return
        static = is_static(node)
        columns = [(operand, self._columns[operand]) for operand in operands]
        partition, points = self._join(
            (everywhere,) if static else tuple(column.partition for _, column in columns)
        )
        different = list[dict[fx.Node, Any]]()
        for point in points:
            infos = {operand: column.infos[column.partition[point]] for operand, column in columns}
            if static:
                infos[node] = node.meta["info"][0]
            else:
                args, kwargs = fx.map_arg((node.args, node.kwargs), infos.__getitem__)
                infos[node] = result_info(node.target, args, kwargs)
            different.append(infos)
        self._arguments[node] = _Arguments(different, partition)
        self._keep(node, [infos[node] for infos in different], partition)

    def _join(self, partitions: tuple[Partition, ...]) -> tuple[Partition, list[int]]:
        """The classes of points that are in one class of each of some partitions, and the first point of each."""
        if partitions not in self._joined:
            classes: dict[tuple[int, ...], int] = {}
            joined = tuple(classes.setdefault(key, len(classes)) for key in zip(*partitions, strict=True))
            self._joined[partitions] = joined, [joined.index(index) for index in range(len(classes))]
        return self._joined[partitions]

    def _keep(self, node: fx.Node, infos: Sequence[Any], partition: Partition) -> None:
        """Keep the infos of a value in each class of points; classes with equal ones become one."""
        infos = [self._infos.setdefault((type(info), info), info) for info in infos]
        different = {id(info): info for info in infos}
        if len(different) < len(infos):
            index = dict(zip(different, range(len(different)), strict=True))
            partition = tuple(index[id(infos[other])] for other in partition)
        self._columns[node] = _Column(tuple(different.values()), partition)
        self._same_value[node] = self._first_with.setdefault((partition, *different), node)


@dataclass(frozen=True)
class _Column:
    """The infos of a value, one for each class of points."""

    infos: tuple[Any, ...]
    partition: Partition


@dataclass(frozen=True)
class _Arguments:
    """The infos of the arguments and the result of a call by node, for each class of points."""

    infos: list[dict[fx.Node, Any]]
    partition: Partition


@dataclass(frozen=True)
class _Point(Mapping[fx.Node, Any]):
    """The infos of all values at one point."""

    columns: Mapping[fx.Node, _Column]
    index: int

    def __getitem__(self, node: fx.Node) -> Any:
        column = self.columns[node]
        return column.infos[column.partition[self.index]]

    def __iter__(self) -> Iterator[fx.Node]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)
