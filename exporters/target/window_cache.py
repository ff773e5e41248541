"""Caches that hold a window alone: the layers that may have them, and the inputs of their graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from exporters.target.targets import Target
from specs.model.model import Model
from zoo.core.state_names import state_name
from zoo.tracing.task import Task, WindowCache

Windows = Mapping[int, WindowCache]
"""The caches that hold a window alone, by layer."""


def windowed_layers(model: Any, spec: Model, target: Target) -> dict[int, WindowCache]:
    """The caches of a decoder that may hold a window alone, by layer: the window is shorter than the context."""
    context = spec.context_length_of(spec.last_stack)
    windows = {layer: attention.window for layer, attention in model.decoder.attentions.items()}
    return {
        layer: WindowCache(window, window + (target.window_slack or 0))
        for layer, window in windows.items()
        if window is not None and (context is None or window < context)
    }


def with_window_caches(task: Task, windows: Windows) -> Task:
    """A task whose caches in these layers hold a window alone: the length of each is named for its window."""
    names = {
        state_name("past", layer, part, grows=True): f"window_{cache.window}_slots"
        for layer, cache in windows.items()
        for part in ("key", "value")
    }
    inputs = tuple(
        replace(placeholder, dims=(*placeholder.dims[:2], names[placeholder.name], *placeholder.dims[3:]))
        if placeholder.name in names
        else placeholder
        for placeholder in task.inputs
    )
    held = {f"window_{cache.window}_slots": cache for cache in windows.values()}
    return task if inputs == task.inputs else replace(task, inputs=inputs, windows=held)
