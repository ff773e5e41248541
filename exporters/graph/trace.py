"""From a model to its ONNX graphs, and the .onnx files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import onnx
from torch import fx, nn

from exporters.graph.fusing import fuse
from exporters.graph.fusing.cache_forms import (
    has_cache_operations,
    hold_windows,
    quantize_caches,
    with_quantized_cache,
)
from exporters.graph.fusing.mixtures import unquantized_mixtures
from exporters.graph.quantization.cache_scheme import CacheFormat
from exporters.graph.quantization.scheme import Quantization
from exporters.graph.translate import Lowering
from exporters.graph.values import Graph
from exporters.target.targets import Target
from exporters.target.window_cache import Windows, with_window_caches
from zoo import functional
from zoo.core.collector import collector_paused
from zoo.tracing.symbols import Symbols
from zoo.tracing.task import Task
from zoo.tracing.traced_model import TaskTrace


@dataclass(frozen=True)
class TracedTask:
    """A task of a model, traced and fused for a target; graphs of several precisions are made from it."""

    task: Task
    target: Target
    symbols: Symbols
    traced: fx.Graph
    unfused: list[str]

    @classmethod
    def of(
        cls,
        model: nn.Module,
        task: Task,
        target: Target,
        context_length: int | None,
        cache: CacheFormat | None = None,
        windows: Windows = MappingProxyType({}),
    ) -> TracedTask:
        """Trace and fuse a task of a model on the meta device.

        ``cache`` is the format of cached keys and values, used where every attention supports it, and ``windows`` are the layers
        whose caches then hold a window alone. Raises :class:`zoo.tracing.tracer.UntraceableError`.
        """
        with collector_paused():
            return cls.fused(TaskTrace.of(model, task), task, target, context_length, cache, windows)

    @classmethod
    def fused(
        cls,
        trace: TaskTrace,
        task: Task,
        target: Target,
        context_length: int | None,
        cache: CacheFormat | None = None,
        windows: Windows = MappingProxyType({}),
    ) -> TracedTask:
        """Fuse the trace of a task, which is changed."""
        unfused = fuse(trace.graph, target, context_length)
        if cache is not None and has_cache_operations(trace.graph):
            task = with_quantized_cache(task, cache)
            quantize_caches(trace.graph, cache)
        symbols = trace.symbols
        if windows and has_cache_operations(trace.graph):
            task = with_window_caches(task, windows)
            symbols = hold_windows(trace.graph, task, symbols)
        return cls(task, target, symbols, trace.graph, unfused)

    def graph(self, quantization: Quantization | None, adapted: frozenset[str] = frozenset()) -> Graph:
        """The ONNX graph; ``adapted`` are the weights whose products adapters may change. Raises :class:`exporters.graph.translate.NoEmitterError`."""
        task = self.task
        with collector_paused():
            lowering = Lowering(self.traced, self.target, self.symbols, task.inputs, quantization, adapted)
            graph = lowering.graph(task.name, half_scores=task.half_scores)
            kept = (
                []
                if quantization is None
                else [*unquantized_mixtures(self.traced, quantization), *_lstms(self.traced)]
            )
            return replace(graph, unfused=[*self.unfused, *kept], cache_slots=task.cache_slots)

    def lowering(self) -> Lowering:
        """The ONNX operations in floats. Raises :class:`exporters.graph.translate.NoEmitterError`."""
        with collector_paused():
            return Lowering(self.traced, self.target, self.symbols, self.task.inputs)


def _lstms(graph: fx.Graph) -> list[str]:
    """The LSTM layers of a graph, which stay unquantized."""
    layers = (node for node in graph.nodes if node.target is functional.lstm)
    return [f"LSTM: {node.meta['path']}: its weights stay in floating point" for node in layers]


def trace_and_lower(
    model: nn.Module,
    task: Task,
    target: Target,
    context_length: int | None = None,
    quantization: Quantization | None = None,
    cache: CacheFormat | None = None,
    adapted: frozenset[str] = frozenset(),
    windows: Windows = MappingProxyType({}),
) -> Graph:
    """The ONNX graph of one task of a model on the meta device, through :class:`TracedTask`.

    Raises :class:`zoo.tracing.tracer.UntraceableError` and :class:`exporters.graph.translate.NoEmitterError`.
    """
    return TracedTask.of(model, task, target, context_length, cache, windows).graph(quantization, adapted)


def write_graphs(directory: Path, graphs: Mapping[str, onnx.ModelProto], metadata: Mapping[str, str]) -> None:
    """Write .onnx files to a directory, by relative path, with metadata."""
    for name, model in graphs.items():
        onnx.helper.set_model_props(model, dict(metadata))
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_bytes(model.SerializeToString())
