"""Fusion of quantized caches: attentions that cache keys and values as integer codes."""

from __future__ import annotations

import operator
from dataclasses import replace

from torch import fx

from exporters.graph.fusing.functions import group_query_attention
from exporters.graph.quantization.cache_scheme import CacheFormat
from zoo.ops import TensorInfo
from zoo.tracing.task import Task
from zoo.tracing.tracer import node_infos


def has_cache_operations(graph: fx.Graph) -> bool:
    """Return whether attention in a traced graph is an operation that appends to its own cache (all layers or none do)."""
    return any(node.target is group_query_attention for node in graph.nodes)


def quantize_caches(graph: fx.Graph, cache: CacheFormat) -> None:
    """Give every fused attention of a decoder, and its inputs and outputs, a cache of codes."""
    for node in list(graph.nodes):
        if node.target is not group_query_attention:
            continue
        for past in node.args[1:3]:
            past.meta["info"] = tuple(_stored(info, cache) for info in past.meta["info"])
        node.kwargs = {**node.kwargs, "cache": cache}
        taken = [user for user in node.users if user.target is operator.getitem]
        for changed in (node, *taken):
            changed.meta["info"] = node_infos(changed)


def _stored(info: TensorInfo, cache: CacheFormat) -> TensorInfo:
    *sizes, width = info.shape
    return TensorInfo((*sizes, cache.stored_width(width)), cache.dtype)


def with_quantized_cache(task: Task, cache: CacheFormat | None) -> Task:
    """Return a task whose self-attention caches hold codes; without a format, the task unchanged."""
    if cache is None:
        return task
    inputs = []
    for placeholder in task.inputs:
        if placeholder.name.startswith("past_key_values") and ".encoder." not in placeholder.name:
            *dims, width = placeholder.dims
            assert isinstance(width, int)
            placeholder = replace(placeholder, dtype=cache.dtype, dims=(*dims, cache.stored_width(width)))
        inputs.append(placeholder)
    return replace(task, inputs=tuple(inputs))
