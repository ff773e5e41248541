"""Shapes in a traced graph, with numbers for its symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import fx

from zoo.ops import TensorInfo, result_info
from zoo.tracing.symbols import Placeholder, summands
from zoo.tracing.tracer import is_static


def infos_at(
    graph: fx.Graph, inputs: Sequence[Placeholder], numbers: Mapping[str, int]
) -> dict[fx.Node, Any]:
    """TensorInfo, size or tuple of every value except the outputs, with a number for each symbol in the inputs' dims."""
    placeholders = {placeholder.name: placeholder for placeholder in inputs}
    infos: dict[fx.Node, Any] = {}

    def of(argument: Any) -> Any:
        return fx.map_arg(argument, infos.__getitem__)

    for node in graph.nodes:
        match node.op:
            case "placeholder":
                placeholder = placeholders[str(node.target)]
                infos[node] = TensorInfo(
                    tuple(_number(dim, numbers) for dim in placeholder.dims), placeholder.dtype
                )
            case "get_attr":
                infos[node] = node.meta["info"][0]
            case "call_function" | "call_method" if is_static(node):
                infos[node] = node.meta["info"][0]
            case "call_function" | "call_method":
                infos[node] = result_info(node.target, of(node.args), of(node.kwargs))
    return infos


def _number(dim: int | str, numbers: Mapping[str, int]) -> int:
    return dim if isinstance(dim, int) else sum(numbers[symbol] for symbol in summands(dim))
