"""Checks for support of a quantized cache."""

from __future__ import annotations

from collections.abc import Iterable

from exporters.graph.quantization.cache_scales import format_of
from exporters.graph.quantization.cache_scheme import CacheFormat
from exporters.graph.values import Graph
from exporters.layouts import LAYOUTS, Layout
from exporters.target.targets import TARGETS, Target
from specs.base.errors import UserError, option_name
from specs.model.model import Model

OPTION = option_name("cache_precision")


def check_cache_format(
    spec: Model, target: Target, layout: Layout, via: str, cache: CacheFormat | None
) -> None:
    """Raise :class:`specs.base.errors.UserError` if the model, target, client or tracer does not support a cache format."""
    if cache is None:
        return
    if not spec.decodes or spec.architecture == "encoder-decoder":
        why = (
            "an encoder has no cache"
            if not spec.decodes
            else "the caches of an encoder-decoder grow in an operation without scales"
        )
        raise UserError(f"{OPTION} applies only to decoders\n  value: {spec.name}; {why}\n  Leave it out.")
    if cache.bits not in target.cache_bits:
        able = " or ".join(
            f"{option_name('target')} {other.name}"
            for other in TARGETS.values()
            if cache.bits in other.cache_bits
        )
        raise UserError(
            f"{OPTION} {cache.name} needs attention operations with scales for their cache\n"
            f"  value: {option_name('target')} {target.name}\n  Pass {able}, or leave it out."
        )
    if layout.target(target).padding != "right":
        able = " or ".join(other.name for other in LAYOUTS.values() if other.padding == "right")
        raise UserError(
            f"{OPTION} {cache.name} needs attention operations that pad rows on the right\n"
            f"  value: {option_name('layout')} {layout.name}, whose client pads on the left\n"
            f"  Pass {option_name('layout')} {able}, or leave it out."
        )
    if reusing := spec.last_stack.reusing_layers:
        raise UserError(
            f"{OPTION} {cache.name} needs keys and values of its own in every layer, because each has its scales\n"
            f"  value: {spec.name}, whose layer {reusing[0]} reuses the keys and values of another layer\n  Leave it out."
        )
    if via != "fx":
        raise UserError(
            f"{OPTION} needs zoo's own tracer\n  value: {option_name('via')} {via}\n  Pass {option_name('via')} fx, or leave it out."
        )


def check_cache_fused(spec: Model, graphs: Iterable[Graph], cache: CacheFormat | None) -> None:
    """Raise :class:`specs.base.errors.UserError` if attention in a model does not support a quantized cache."""
    graphs = list(graphs)
    if cache is None or format_of(graphs) is not None:
        return
    reasons = "; ".join(reason for graph in graphs for reason in graph.unfused)
    raise UserError(
        f"{OPTION} {cache.name} needs every attention of {spec.name} fused with its cache\n"
        f"  value: {reasons}\n  Leave it out, or pass another {option_name('precision')} where the reason names one."
    )


def no_inputs(why: str) -> UserError:
    """The error for calibrating the scales of a cache without representative inputs."""
    return UserError(
        f"{OPTION} needs representative inputs to calibrate its scales\n  value: {why}\n"
        f"  Pass {option_name('calibrate')}, or leave it out."
    )
