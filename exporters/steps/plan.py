"""The plan of an export: its tasks, graphs and files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import PurePath

import onnx

from exporters.data.data_file import Region, lay_out
from exporters.data.mixed_bits import recorded_blocks
from exporters.data.prequantized import carried_blocks, quantized_weights
from exporters.data.proto import model_proto
from exporters.graph.fusing.quantized_cache import with_quantized_cache
from exporters.graph.precisions import PRECISIONS, Precision, quantization_of, unquantized
from exporters.graph.quantization.scheme import Quantization
from exporters.graph.trace import trace_and_lower
from exporters.graph.values import Graph
from exporters.layouts import LAYOUTS, Layout
from exporters.steps.options import ExportOptions
from exporters.target.kernels.table import table_of
from exporters.target.kernels.widening import widened
from exporters.target.static_cache import cache_length
from exporters.target.targets import TARGETS, Target
from exporters.verification.cases import ROWS
from specs.model.model import Model
from zoo.builder import ZooModel, assemble
from zoo.core.tensors import weight_count
from zoo.record.records import MixedRecord, QuantizedRecord
from zoo.tracing.task import ENCODER, Task
from zoo.tracing.tasks import tasks_with_static_cache
from zoo.weights.blocks import Blocks
from zoo.weights.source import WeightSource


@dataclass(frozen=True)
class ExportPlan:
    """One export: a spec, its ``model`` on the meta device in the dtype of unquantized tensors, and the options.

    ``quantized`` are the weights that the checkpoint stores quantized, and whether the export carries them;
    ``raised`` the blocks of weights that a budget gives more bits than the precision has, None for float16.
    """

    spec: Model
    model: ZooModel
    options: ExportOptions
    quantized: tuple[QuantizedRecord, ...] = ()
    raised: Mapping[str, Blocks | None] = field(default_factory=dict)

    @staticmethod
    def make(spec: Model, options: ExportOptions) -> ExportPlan:
        """The plan of an export without weights in their own blocks."""
        dtype = PRECISIONS[options.precision].dtype_on(TARGETS[options.target])
        return ExportPlan(spec, assemble(spec, dtype), options)

    def with_weights(self, source: WeightSource | None) -> ExportPlan:
        """The same plan for a checkpoint, with the blocks of its quantized weights."""
        if source is None:
            return self
        return replace(self, quantized=quantized_weights(self.model, source, self.target, self.precision))

    def of(self, spec: Model) -> ExportPlan:
        """The same export of another spec, such as a reduced model."""
        if spec is self.spec:
            return self
        return replace(self, spec=spec, model=assemble(spec, self.precision.dtype_on(self.target)))

    @property
    def target(self) -> Target:
        """The target in the opset that was asked for, restricted by the layout's client."""
        return self.layout.target(TARGETS[self.options.target].in_opset(self.options.opset))

    @property
    def layout(self) -> Layout:
        return LAYOUTS[self.options.layout].of_precision(self.options.precision)

    @property
    def precision(self) -> Precision:
        return PRECISIONS[self.options.precision]

    @cached_property
    def tasks(self) -> list[Task]:
        """The tasks of the graphs, in the order in which a client runs them."""
        last_only = self.options.logits == "last"
        if not self.target.static_cache or not self.spec.decodes:
            return self.layout.tasks(self.model, self.spec, last_only)
        length = cache_length(self.spec, self.options.cache_length)
        return tasks_with_static_cache(self.model, self.spec, length, last_only)

    @property
    def graph_paths(self) -> dict[str, Task]:
        """The tasks by the paths of their graphs in the directory."""
        return {
            self.layout.graph_path(task.name): with_quantized_cache(task, self.options.cache)
            for task in self.tasks
        }

    @cached_property
    def graphs(self) -> list[Graph]:
        """The graphs, traced, fused and lowered for the target; empty where PyTorch's exporter writes them."""
        if self.options.via == "torch":
            return []
        context = self.spec.context_length_of(self.spec.last_stack)
        return [
            trace_and_lower(
                self.model, task, self.target, context, self._quantization(task), self.options.cache
            )
            for task in self.tasks
        ]

    @cached_property
    def regions(self) -> dict[str, Region]:
        """The region of each weight in the data file."""
        return lay_out(parameter for graph in self.graphs for parameter in graph.parameters.values())

    def messages(self) -> dict[str, onnx.ModelProto]:
        """The graphs as ONNX messages by their paths."""
        kernels = table_of(self.target.providers[0])
        written = {
            self.layout.graph_path(graph.name): model_proto(
                graph, self.regions, PurePath(self.layout.data_path(graph.name)).name
            )
            for graph in self.graphs
        }
        return (
            written if kernels is None else {path: widened(model, kernels) for path, model in written.items()}
        )

    @property
    def data_paths(self) -> list[str]:
        """The paths of the data file: several where each graph needs its own name for it."""
        return list(dict.fromkeys(self.layout.data_path(task.name) for task in self.tasks))

    @property
    def held_bytes(self) -> int:
        """The bytes of the model in float32, in which it is compared: its weights, and its caches of fixed length in
        the largest case."""
        task = self.tasks[-1]
        caches = [given.dims[1:] for given in task.inputs if task.cache_slots in given.dims[2:3]]
        held = sum(math.prod(dim for dim in dims if isinstance(dim, int)) for dims in caches)
        return 4 * (weight_count(self.model) + ROWS * held)

    def _quantization(self, task: Task) -> Quantization | None:
        options = self.options
        decodes = self.spec.decodes
        return quantization_of(
            self.precision,
            self.target,
            decodes=decodes,
            graph_decodes=decodes and task.name != ENCODER,
            blocks=Blocks(4, options.block_size, not options.asymmetric),
            table_bits=4 if options.head_precision == "int4" else 8,
            own={
                **carried_blocks(self.quantized),
                **self.raised,
                **unquantized(self.model, self.target),
            },
            static_inputs=options.activations == "static",
        )


def graphs_of(spec: Model, options: ExportOptions) -> dict[str, Task]:
    """The tasks of an export by the paths of their graphs."""
    return ExportPlan.make(spec, options).graph_paths


def data_places(
    spec: Model,
    options: ExportOptions,
    quantized: Sequence[QuantizedRecord] = (),
    mixed: MixedRecord | None = None,
) -> tuple[str, dict[str, Region]]:
    """The path of an export's data file, and the region of each weight.

    ``quantized`` and ``mixed`` are the export's records of weights in their own blocks.
    """
    plan = replace(ExportPlan.make(spec, options), quantized=tuple(quantized), raised=recorded_blocks(mixed))
    return plan.data_paths[0], plan.regions
