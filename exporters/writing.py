"""Writing the graphs of a model and their one data file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir
from torch import nn

from exporters.data_file import Region
from exporters.graph import DTYPES, GraphBuilder
from exporters.lowering import lower
from exporters.targets import MINIMUM_RUNTIME, Target
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
    builder: GraphBuilder

    @property
    def file(self) -> str:
        """Its file's name."""
        return f"{self.name}.onnx"

    @property
    def minimum_runtime(self) -> str:
        """The first ONNX Runtime that runs it."""
        return MINIMUM_RUNTIME[self.builder.opset]


def trace_and_lower(model: nn.Module, task: Task, target: Target) -> Graph:
    """The ONNX graph of one task of a model on the meta device.

    Raises :class:`zoo.tracing.tracer.UntraceableError` and :class:`exporters.lowering.NoEmitterError`.
    """
    static = {size for parameter in model.parameters() for size in parameter.shape}
    static.update(dim for given in task.inputs for dim in given.dims if isinstance(dim, int))
    symbols = Symbols.of(task.inputs, static)
    traced = Tracer(model, symbols, target.whole).run(task.call, task.inputs)
    graph, builder = lower(traced, task.name, model, target, symbols, task.inputs)
    onnx = ir.Model(graph, ir_version=IR_VERSIONS[builder.opset], producer_name="zoo")
    return Graph(task.name, onnx, builder)


def place_weights(graph: Graph, regions: Mapping[str, Region]) -> None:
    """Point the weights of a graph at their places in the data file."""
    for name, parameter in graph.builder.parameters.items():
        graph.model.graph.initializers[name].const_value = ir.ExternalTensor(
            location=DATA_FILE,
            offset=regions[name].offset,
            length=regions[name].length,
            dtype=DTYPES[parameter.dtype],
            shape=ir.Shape(parameter.shape),
            name=name,
        )


def write_graphs(directory: Path, graphs: Sequence[Graph], metadata: Mapping[str, str]) -> None:
    """Write the .onnx files, with metadata."""
    for graph in graphs:
        graph.model.metadata_props.update(metadata)
        (directory / graph.file).write_bytes(ir.to_proto(graph.model).SerializeToString())
