"""Attentions that keep their keys and values as integer codes."""

from __future__ import annotations

import operator
from dataclasses import replace

from torch import fx

from exporters.fusing.functions import group_query_attention
from exporters.quantized_cache.scheme import CacheFormat
from zoo.tracing.facts import Facts, node_facts
from zoo.tracing.tasks import Task


def has_cache_operations(graph: fx.Graph) -> bool:
    """Whether the attentions of a traced graph are operations that append to their caches themselves: all, or none."""
    return any(node.target is group_query_attention for node in graph.nodes)


def quantize_caches(graph: fx.Graph, cache: CacheFormat) -> None:
    """Give every fused attention of a decoder, and its inputs and outputs, a cache of codes."""
    for node in list(graph.nodes):
        if node.target is not group_query_attention:
            continue
        for past in node.args[1:3]:
            past.meta["facts"] = tuple(_stored(facts, cache) for facts in past.meta["facts"])
        node.kwargs = {**node.kwargs, "cache": cache}
        taken = [user for user in node.users if user.target is operator.getitem]
        for changed in (node, *taken):
            changed.meta["facts"] = (node_facts(changed, 0), node_facts(changed, 1))


def _stored(facts: Facts, cache: CacheFormat) -> Facts:
    *sizes, width = facts.shape
    return Facts((*sizes, cache.stored_width(width)), cache.dtype)


def with_quantized_cache(task: Task, cache: CacheFormat | None) -> Task:
    """A task whose caches of a decoder's own tokens are codes; the same without a format."""
    if cache is None:
        return task
    inputs = []
    for given in task.inputs:
        if given.name.startswith("past_key_values") and ".encoder." not in given.name:
            *dims, width = given.dims
            assert isinstance(width, int)
            given = replace(given, dtype=cache.dtype, dims=(*dims, cache.stored_width(width)))
        inputs.append(given)
    return replace(task, inputs=tuple(inputs))
