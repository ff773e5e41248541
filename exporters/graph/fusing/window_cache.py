"""Fusion of caches that hold a window alone: attentions that drop the keys and values before it."""

from __future__ import annotations

import operator

from torch import fx

from exporters.graph.fusing.functions import group_query_attention
from zoo.ops import TensorInfo
from zoo.tracing.symbols import SizePair, Symbols
from zoo.tracing.task import Task
from zoo.tracing.tracer import node_infos


def hold_windows(graph: fx.Graph, task: Task, symbols: Symbols) -> Symbols:
    """Let the fused attentions of a decoder whose caches hold a window alone, by the inputs of the task, drop what is before it.

    Returns the symbols with the lengths of these caches.
    """
    symbols = symbols.with_names(task.windows)
    lengths = {placeholder.name: placeholder.dims[2:3] for placeholder in task.inputs}
    for node in list(graph.nodes):
        if node.target is not group_query_attention:
            continue
        (length,) = lengths[str(node.args[1].target)]
        if length not in task.windows:
            continue
        for past in node.args[1:3]:
            past.meta["info"] = _resized(past.meta["info"], symbols.sizes(length))
        node.kwargs = {**node.kwargs, "window_cache": True}
        taken = [user for user in node.users if user.target is operator.getitem]
        for changed in (node, *taken):
            changed.meta["info"] = node_infos(changed)
    return symbols


def _resized(infos: tuple[TensorInfo, TensorInfo], slots: SizePair) -> tuple[TensorInfo, ...]:
    return tuple(
        TensorInfo((*info.shape[:2], size, *info.shape[3:]), info.dtype)
        for info, size in zip(infos, slots, strict=True)
    )
