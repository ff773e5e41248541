"""Checks for support of caches that hold a window alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from exporters.graph.values import Graph
from exporters.layouts import LAYOUTS, Layout
from exporters.target.targets import TARGETS, Target
from exporters.target.window_cache import windowed_layers
from specs.base.errors import UserError, option_name
from specs.model.model import Model

OPTION = option_name("window_cache")


def check_window_cache(model: Any, spec: Model, target: Target, layout: Layout) -> None:
    """Raise :class:`specs.base.errors.UserError` unless the model, target and client support caches that hold a window alone."""
    if spec.architecture != "decoder":
        raise UserError(
            f"{OPTION} applies only to decoders\n  value: {spec.name}; the architecture is {spec.architecture}\n  Leave it out."
        )
    windows = windowed_layers(model, spec, target)
    if not windows:
        raise UserError(
            f"{OPTION} needs layers whose window is shorter than the context\n  value: {spec.name} has none\n  Leave it out."
        )
    if target.window_slack is None:
        able = " or ".join(other.name for other in TARGETS.values() if other.window_slack is not None)
        raise UserError(
            f"{OPTION} needs attention operations that drop the keys before a window\n"
            f"  value: {option_name('target')} {target.name}\n  Pass {option_name('target')} {able}, or leave it out."
        )
    if layout.cached_windows == 0:
        able = " or ".join(other.name for other in LAYOUTS.values() if other.cached_windows != 0)
        raise UserError(
            f"{OPTION} needs a client that gives each layer a cache of its own length\n"
            f"  value: {option_name('layout')} {layout.name}\n  Pass {option_name('layout')} {able}, or leave it out."
        )
    sizes = list(dict.fromkeys(cache.window for cache in windows.values()))
    if layout.cached_windows is not None and len(sizes) > layout.cached_windows:
        raise UserError(
            f"{option_name('layout')} {layout.name} has caches for one window\n"
            f"  value: {spec.name} has windows of {' and '.join(map(str, sizes))} tokens\n  Leave {OPTION} out."
        )
    if reusing := spec.last_stack.reusing_layers:
        raise UserError(
            f"{OPTION} needs keys and values of its own in every layer, because each drops them from its cache\n"
            f"  value: {spec.name}, whose layer {reusing[0]} reuses the keys and values of another layer\n  Leave it out."
        )


def check_windows_fused(spec: Model, graphs: Iterable[Graph]) -> None:
    """Raise :class:`specs.base.errors.UserError` if attention in a model does not drop the keys before its window."""
    graphs = list(graphs)
    if any(graph.padding == "none" for graph in graphs):
        return
    reasons = "; ".join(reason for graph in graphs for reason in graph.unfused)
    raise UserError(
        f"{OPTION} needs every attention of {spec.name} fused with its cache\n"
        f"  value: {reasons}\n  Leave it out, or pass another {option_name('precision')} where the reason names one."
    )
