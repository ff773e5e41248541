"""The third stage of an export: the graphs of a plan, and the place of every weight in the data file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

import onnx

from exporters.data.data_file import Region, lay_out
from exporters.data.proto import model_proto
from exporters.graph.trace import trace_and_lower
from exporters.graph.values import Graph
from exporters.steps.plan import Plan
from exporters.target.kernels.placement import placement
from exporters.target.kernels.table import table_of
from exporters.target.kernels.widening import widened
from specs.base.errors import UserError, option_name
from zoo.core.units import byte_text


@dataclass(frozen=True)
class Graphs:
    """The graphs of a plan, traced, fused and written for the target, and the region of each weight in the data file."""

    plan: Plan
    graphs: tuple[Graph, ...]
    regions: Mapping[str, Region]

    @staticmethod
    def of(plan: Plan) -> Graphs:
        """Trace the tasks of a plan.

        Raises :class:`zoo.tracing.tracer.UntraceableError` and :class:`exporters.graph.translate.NoEmitterError`.
        """
        context = plan.spec.context_length_of(plan.spec.last_stack)
        graphs = tuple(
            trace_and_lower(
                plan.model,
                task,
                plan.target,
                context,
                plan.quantization(task),
                plan.options.cache,
                plan.adapted,
                plan.windows,
            )
            for task in plan.tasks
        )
        return Graphs(
            plan,
            graphs,
            lay_out(parameter for graph in graphs for parameter in graph.parameters.values()),
        )

    def messages(self) -> dict[str, onnx.ModelProto]:
        """The graphs as ONNX messages by their paths."""
        layout, kernels = self.plan.layout, table_of(self.plan.target.providers[0])
        messages = {
            layout.graph_path(graph.name): model_proto(
                graph, self.regions, PurePath(layout.data_path(graph.name)).name
            )
            for graph in self.graphs
        }
        if kernels is None:
            return messages
        return {path: widened(message, kernels) for path, message in messages.items()}


def check_tensors(graphs: Graphs) -> None:
    """Raise :class:`specs.base.errors.UserError` where a weight is larger than a buffer of the target."""
    limit = graphs.plan.target.largest_tensor
    if limit is None:
        return
    for name, region in graphs.regions.items():
        if region.length > limit:
            raise UserError(
                f"{option_name('target')} {graphs.plan.target.name} holds no tensor of more than {byte_text(limit)}\n"
                f"  value: {name} has {byte_text(region.length)} in {graphs.plan.precision.name}\n"
                f"  Use a {option_name('precision')} of fewer bits."
            )


def check_captured(graphs: Graphs, files: Mapping[str, onnx.ModelProto]) -> None:
    """Raise :class:`specs.base.errors.UserError` where a graph that the client is to capture cannot be captured."""
    kernels = table_of(graphs.plan.target.providers[0])
    if not graphs.plan.options.cuda_graph or kernels is None:
        return
    for name, model in files.items():
        if reason := placement(model, kernels).not_captured:
            raise UserError(
                f"{name} cannot be captured as a CUDA graph: {reason}\n  Leave out {option_name('cuda_graph')}."
            )
