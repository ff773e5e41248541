"""Writing the graphs of a model and their one data file."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir
from torch import nn

from exporters.data_file import Region
from exporters.graph import DTYPES, Parameter
from exporters.lowering import lower
from exporters.targets import Target
from exporters.tasks import Task
from zoo.tracing.symbols import Symbols
from zoo.tracing.tracer import Tracer

DATA_FILE = "model.onnx.data"

IR_VERSIONS = {18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 11}
"""The IR version that came with each opset: older runtimes refuse newer ones."""


@dataclass(frozen=True)
class Graph:
    """A graph ready to write: its weights are declared, and lie where a layout puts them."""

    name: str
    model: ir.Model
    parameters: Mapping[str, Parameter]

    @property
    def file(self) -> str:
        """Its file's name."""
        return f"{self.name}.onnx"


def trace_and_lower(model: nn.Module, task: Task, target: Target) -> Graph:
    """The ONNX graph of one task of a model on the meta device.

    Raises :class:`zoo.tracing.tracer.UntraceableError` and :class:`exporters.lowering.NoEmitterError`.
    """
    static = {size for parameter in model.parameters() for size in parameter.shape}
    static.update(dim for given in task.inputs for dim in given.dims if isinstance(dim, int))
    symbols = Symbols.of(task.inputs, static, task.sums)
    with _collector_paused():
        traced = Tracer(model, symbols, target.whole).run(task.call, task.inputs)
        graph, builder = lower(traced, task.name, model, target, symbols, task.inputs)
    onnx = ir.Model(graph, ir_version=IR_VERSIONS[builder.opset], producer_name="zoo")
    return Graph(task.name, onnx, builder.parameters)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Without garbage collection: many objects are made and none dropped, so that each search would be in vain."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def place_weights(graph: Graph, regions: Mapping[str, Region]) -> None:
    """Point the weights of a graph at their places in the data file."""
    for name, parameter in graph.parameters.items():
        graph.model.graph.initializers[name].const_value = ir.ExternalTensor(
            location=DATA_FILE,
            offset=regions[name].offset,
            length=regions[name].length,
            dtype=DTYPES[parameter.dtype],
            shape=ir.Shape(parameter.shape),
            name=name,
        )


def write_graphs(directory: Path, graphs: Mapping[str, ir.Model], metadata: Mapping[str, str]) -> None:
    """Write the .onnx files by name, with metadata."""
    for name, model in graphs.items():
        model.metadata_props.update(metadata)
        (directory / name).write_bytes(ir.to_proto(model).SerializeToString())
