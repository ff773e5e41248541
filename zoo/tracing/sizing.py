"""Shapes in a traced graph, with numbers for its symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from torch import fx

from zoo.ops import TensorInfo, result_info
from zoo.tracing.symbols import Placeholder, summands
from zoo.tracing.tracer import is_static


class SizedGraph:
    """TensorInfo, size or tuple of every value except the outputs at each point: with numbers for the symbols in the inputs' dims.

    Equal values are one object, and a call is worked out once for equal arguments: most depend on few of the symbols, and layers
    repeat one another. ``by_point`` has the values at each point, and ``same_call`` the first call with the function and the
    arguments of a call, at every point.
    """

    def __init__(
        self, graph: fx.Graph, inputs: Sequence[Placeholder], points: Sequence[Mapping[str, int]]
    ) -> None:
        placeholders = {placeholder.name: placeholder for placeholder in inputs}
        self.by_point: list[dict[fx.Node, Any]] = [{} for _ in points]
        self.same_call: dict[fx.Node, fx.Node] = {}
        self._same_value: dict[fx.Node, fx.Node] = {}
        self._infos: dict[tuple[type, Any], Any] = {}
        self._columns: dict[tuple[int, ...], fx.Node] = {}
        self._calls: dict[tuple[Any, str, str], fx.Node] = {}
        for node in graph.nodes:
            match node.op:
                case "placeholder":
                    placeholder = placeholders[str(node.target)]
                    shapes = [tuple(_number(dim, numbers) for dim in placeholder.dims) for numbers in points]
                    self._keep(node, [TensorInfo(shape, placeholder.dtype) for shape in shapes])
                case "get_attr":
                    self._keep(node, [node.meta["info"][0]] * len(points))
                case "call_function" | "call_method":
                    self._work_out(node)

    def _work_out(self, node: fx.Node) -> None:
        """Keep the results of a call; an earlier call with the same arguments has the same."""
        args, kwargs = fx.map_arg((node.args, node.kwargs), self._same_value.__getitem__)
        first = self._calls.setdefault((node.target, repr(args), repr(kwargs)), node)
        self.same_call[node] = first
        if first is node:
            self._keep(node, once_each(node, self.by_point, _result))
            return
        self._same_value[node] = self._same_value[first]
        for infos in self.by_point:
            infos[node] = infos[first]

    def _keep(self, node: fx.Node, column: Sequence[Any]) -> None:
        """Keep a value's infos, one for each point."""
        for infos, info in zip(self.by_point, column, strict=True):
            infos[node] = self._infos.setdefault((type(info), info), info)
        ids = tuple(id(infos[node]) for infos in self.by_point)
        self._same_value[node] = self._columns.setdefault(ids, node)


Number = TypeVar("Number")


def once_each(
    node: fx.Node,
    by_point: Sequence[Mapping[fx.Node, Any]],
    reading: Callable[[fx.Node, Mapping[fx.Node, Any]], Number],
) -> list[Number]:
    """A reading of a call's arguments and result at each point, taken once for the same arguments."""
    if is_static(node):
        return [reading(node, by_point[0])] * len(by_point)
    operands = node.all_input_nodes
    known: dict[tuple[int, ...], Number] = {}
    results = []
    for infos in by_point:
        key = tuple(id(infos[operand]) for operand in operands)
        if key not in known:
            known[key] = reading(node, infos)
        results.append(known[key])
    return results


def _result(node: fx.Node, infos: Mapping[fx.Node, Any]) -> Any:
    if is_static(node):
        return node.meta["info"][0]
    args, kwargs = fx.map_arg((node.args, node.kwargs), infos.__getitem__)
    return result_info(node.target, args, kwargs)


def _number(dim: int | str, numbers: Mapping[str, int]) -> int:
    return dim if isinstance(dim, int) else sum(numbers[symbol] for symbol in summands(dim))
