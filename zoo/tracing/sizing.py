"""The sizes in a traced graph at some numbers for its symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import fx

from zoo.tracing.facts import Facts, facts_of
from zoo.tracing.symbols import SUM, Placeholder


def facts_at(
    graph: fx.Graph, inputs: Sequence[Placeholder], numbers: Mapping[str, int]
) -> dict[fx.Node, Any]:
    """The facts of every value but the outputs, with a number for each name that the inputs' dims have."""
    given = {each.name: each for each in inputs}
    facts: dict[fx.Node, Any] = {}

    def of(argument: Any) -> Any:
        return fx.map_arg(argument, facts.__getitem__)

    for node in graph.nodes:
        match node.op:
            case "placeholder":
                each = given[str(node.target)]
                facts[node] = Facts(tuple(_number(dim, numbers) for dim in each.dims), each.dtype)
            case "get_attr":
                facts[node] = node.meta["facts"][0]
            case "call_function" | "call_method":
                facts[node] = facts_of(node.target, of(node.args), of(node.kwargs))
    return facts


def _number(dim: int | str, numbers: Mapping[str, int]) -> int:
    return dim if isinstance(dim, int) else sum(numbers[part] for part in dim.split(SUM))
