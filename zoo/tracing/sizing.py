"""Shapes in a traced graph, with numbers for its symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from torch import fx

from zoo.ops import TensorInfo, result_info
from zoo.tracing.symbols import Placeholder, summands
from zoo.tracing.tracer import is_static


def infos_at(
    graph: fx.Graph, inputs: Sequence[Placeholder], points: Sequence[Mapping[str, int]]
) -> list[dict[fx.Node, Any]]:
    """TensorInfo, size or tuple of every value except the outputs at each point: with numbers for the symbols in the inputs' dims.

    Equal values are one object, and a call is worked out once for equal arguments: most depend on few of the symbols.
    """
    placeholders = {placeholder.name: placeholder for placeholder in inputs}
    by_point: list[dict[fx.Node, Any]] = [{} for _ in points]
    same: dict[tuple[type, Any], Any] = {}
    for node in graph.nodes:
        match node.op:
            case "placeholder":
                placeholder = placeholders[str(node.target)]
                for infos, numbers in zip(by_point, points, strict=True):
                    shape = tuple(_number(dim, numbers) for dim in placeholder.dims)
                    info = TensorInfo(shape, placeholder.dtype)
                    infos[node] = same.setdefault((type(info), info), info)
            case "get_attr":
                for infos in by_point:
                    infos[node] = node.meta["info"][0]
            case "call_function" | "call_method":
                for infos, info in zip(by_point, once_each(node, by_point, _result), strict=True):
                    infos[node] = same.setdefault((type(info), info), info)
    return by_point


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
