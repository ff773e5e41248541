"""Fused attentions whose caches have a form of their own: integer codes, or a window alone."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from torch import fx

from exporters.graph.fusing.functions import group_query_attention
from exporters.graph.quantization.cache_scheme import CacheFormat
from zoo.ops import TensorInfo
from zoo.tracing.symbols import SizePair, Symbols
from zoo.tracing.task import Task
from zoo.tracing.tracer import node_infos


def has_cache_operations(graph: fx.Graph) -> bool:
    """Return whether attention in a traced graph is an operation that appends to its own cache (all layers or none do)."""
    return bool(_fused(graph))


def quantize_caches(graph: fx.Graph, cache: CacheFormat) -> None:
    """Give every fused attention of a decoder, and its inputs and outputs, a cache of codes."""
    for node in _fused(graph):
        _change(node, lambda info, run: _stored(info, cache), cache=cache)


def hold_windows(graph: fx.Graph, task: Task, symbols: Symbols) -> Symbols:
    """Let the fused attentions of a decoder whose caches hold a window alone, by the inputs of the task, drop what is before it.

    Returns the symbols with the lengths of these caches.
    """
    symbols = symbols.with_names(task.windows)
    lengths = {placeholder.name: placeholder.dims[2:3] for placeholder in task.inputs}
    for node in _fused(graph):
        (length,) = lengths[str(node.args[1].target)]
        if length in task.windows:
            _change(node, partial(_resized, symbols.sizes(length)), window_cache=True)
    return symbols


def _fused(graph: fx.Graph) -> list[Any]:
    return [node for node in graph.nodes if node.target is group_query_attention]


def _change(node: Any, form: Callable[[TensorInfo, int], TensorInfo], **options: Any) -> None:
    """Give an attention options, its cached keys and values a form in both runs of a trace, and its results the form that follows."""
    for past in node.args[1:3]:
        past.meta["info"] = tuple(form(info, run) for run, info in enumerate(past.meta["info"]))
    node.kwargs = {**node.kwargs, **options}
    taken = [user for user in node.users if user.target is operator.getitem]
    for changed in (node, *taken):
        changed.meta["info"] = node_infos(changed)


def _resized(slots: SizePair, info: TensorInfo, run: int) -> TensorInfo:
    return TensorInfo((*info.shape[:2], slots[run], *info.shape[3:]), info.dtype)


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
