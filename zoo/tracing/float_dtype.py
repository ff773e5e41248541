"""A graph in another dtype of weights: that in float16 has the calls of all others, and more casts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import fx

from zoo.ops.elementwise import CASTS, keeps_dtype
from zoo.ops.tensor_info import TensorInfo

HALF = torch.float16
"""The dtype of weights that a model is traced in for several: mixed precision makes casts, and drops none."""


def in_dtype(graph: fx.Graph, dtype: torch.dtype) -> fx.Graph:
    """A copy of the graph of a model with weights in float16, as traced with weights in another dtype.

    Casts that then cast nothing are left out.  Numbers that a forward computes from a dtype, such as its least value, stay.
    """
    copy, values = fx.Graph(), dict[fx.Node, fx.Node]()

    def moved(value: Any) -> Any:
        return values[value] if isinstance(value, fx.Node) else dtype if value is HALF else value

    for node in graph.nodes:
        calls = [
            replace(call, args=args, kwargs=dict(kwargs))
            for call in node.meta.get("semantic_calls", ())
            for args, kwargs in [fx.node.map_aggregate((call.args, call.kwargs), moved)]
        ]
        meta = {**node.meta, "semantic_calls": calls}
        if "info" in node.meta:
            meta["info"] = _both(node.meta["info"], dtype)
        new = values[node] = copy.create_node(node.op, node.target, (), {}, node.name)
        new.args, new.kwargs = fx.node.map_aggregate((node.args, node.kwargs), moved)
        new.meta = meta
        if node.target in CASTS and keeps_dtype(new):
            source = values[node] = new.all_input_nodes[0]
            source.meta["semantic_calls"] += [call for call in calls if source not in call.args]
            copy.erase_node(new)
    return copy


def _both(infos: tuple[Any, Any], dtype: torch.dtype) -> tuple[Any, Any]:
    """The infos of a value in the two runs of a trace; one object if it is the same in both."""
    first = info_in_dtype(infos[0], dtype)
    return first, first if infos[0] is infos[1] else info_in_dtype(infos[1], dtype)


def info_in_dtype(info: Any, dtype: torch.dtype) -> Any:
    """The info of a tensor, size or tuple, with another dtype in place of float16."""
    if isinstance(info, tuple):
        return tuple(info_in_dtype(part, dtype) for part in info)
    return TensorInfo(info.shape, dtype) if isinstance(info, TensorInfo) and info.dtype == HALF else info
