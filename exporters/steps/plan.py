"""The second stage of an export: its tasks and files, and the form of its weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from exporters.data.prequantized import prequantized_blocks, prequantized_weights
from exporters.graph.fusing.cache_forms import with_quantized_cache
from exporters.graph.precisions import PRECISIONS, Precision, quantization_of
from exporters.graph.quantization.scheme import Quantization
from exporters.layouts import LAYOUTS, Layout
from exporters.steps.layer_outputs import attention_of_decoder, without_shared_caches
from exporters.steps.options import ExportOptions
from exporters.steps.request import Request, meta_model
from exporters.target.providers import CPU
from exporters.target.static_cache import cache_length
from exporters.target.targets import TARGETS, Target
from exporters.target.window_cache import Windows, windowed_layers, with_window_caches
from exporters.verification.cases import ROWS
from specs.model.model import Model
from zoo.builder import ZooModel
from zoo.core.graph_names import HIDDEN
from zoo.core.tensors import weight_count
from zoo.layer_outputs.choice import LayerOutput, chosen_outputs, of_reduced
from zoo.layer_outputs.recording import with_layer_outputs
from zoo.record.records import QuantizedRecord
from zoo.tracing.task import ENCODER, Task
from zoo.tracing.tasks import tasks_with_static_cache
from zoo.weights.blocks import Blocks

if TYPE_CHECKING:
    from exporters.steps.adapters import NamedAdapter


@dataclass(frozen=True)
class Plan:
    """The plan of one export: a spec, its ``model`` on the meta device, and the options.

    ``quantized`` are the records of the weights that the checkpoint stores quantized, with the precisions that keep their
    codes; ``more_bits`` are the blocks of weights to which a budget gives more bits than the precision has, None for float16.
    ``layer_outputs`` are additional outputs of the graphs.
    """

    spec: Model
    model: ZooModel
    options: ExportOptions
    quantized: tuple[QuantizedRecord, ...] = ()
    more_bits: Mapping[str, Blocks | None] = field(default_factory=dict)
    adapters: tuple[NamedAdapter, ...] = ()
    layer_outputs: tuple[LayerOutput, ...] = ()

    @staticmethod
    def make(spec: Model, options: ExportOptions) -> Plan:
        """The plan of an export whose weights all have the form of the precision."""
        outputs = chosen_outputs(spec, options.outputs)
        return Plan(spec, meta_model(spec, options), options, layer_outputs=outputs)

    @staticmethod
    def of(request: Request) -> Plan:
        """The plan of a request, with the quantized weights of its checkpoint."""
        plan = Plan(
            request.spec,
            request.model,
            request.options,
            adapters=request.adapters,
            layer_outputs=chosen_outputs(request.spec, request.options.outputs),
        )
        if request.source is None:
            return plan
        quantized = prequantized_weights(
            plan.model, request.source, plan.target, plan.precision, plan.adapted
        )
        return replace(plan, quantized=quantized)

    def for_spec(self, spec: Model) -> Plan:
        """The same export of another spec, such as a reduced model."""
        if spec is self.spec:
            return self
        outputs = of_reduced(spec, self.layer_outputs)
        return replace(self, spec=spec, model=meta_model(spec, self.options), layer_outputs=outputs)

    @property
    def adapted(self) -> frozenset[str]:
        """The weights whose products adapters may change."""
        return frozenset(weight for adapter in self.adapters for weight in adapter.pairs)

    @property
    def target(self) -> Target:
        """The target in the opset that was asked for, restricted by the layout's client and the additional outputs."""
        target = self.layout.target(TARGETS[self.options.target].in_opset(self.options.opset))
        return without_shared_caches(target) if attention_of_decoder(self.layer_outputs) else target

    @property
    def providers(self) -> tuple[str, ...]:
        """The providers that run the files: CUDA's alone where experts are stored as 4-bit floats."""
        floats = any(blocks.floats for blocks in prequantized_blocks(self.quantized).values())
        return tuple(name for name in self.target.providers if name != CPU or not floats)

    @property
    def layout(self) -> Layout:
        return LAYOUTS[self.options.layout].of_precision(self.options.precision)

    @property
    def precision(self) -> Precision:
        return PRECISIONS[self.options.precision]

    @cached_property
    def tasks(self) -> list[Task]:
        """The tasks of the graphs, in the order in which a client runs them."""
        drafts = self.spec.reads_hidden_states or HIDDEN in self.options.outputs
        half = drafts and self.layout.half_drafts
        return [
            replace(with_layer_outputs(task, self.layer_outputs), half_scores=half) for task in self._tasks
        ]

    @property
    def _tasks(self) -> list[Task]:
        last_only = self.options.logits == "last"
        if not self.target.static_cache or not self.spec.decodes:
            return self.layout.tasks(self.model, self.spec, last_only)
        length = cache_length(self.spec, self.options.cache_length)
        return tasks_with_static_cache(self.model, self.spec, length, last_only)

    @property
    def windows(self) -> Windows:
        """The caches that hold a window alone, by layer."""
        return windowed_layers(self.model, self.spec, self.target) if self.options.window_cache else {}

    @property
    def graph_paths(self) -> dict[str, Task]:
        """The tasks by the paths of their graphs in the directory."""
        return {
            self.layout.graph_path(task.name): with_window_caches(
                with_quantized_cache(task, self.options.cache), self.windows
            )
            for task in self.tasks
        }

    @property
    def data_paths(self) -> list[str]:
        """The paths of the data file: several where each graph needs its own name for it."""
        return list(dict.fromkeys(self.layout.data_path(task.name) for task in self.tasks))

    @property
    def held_bytes(self) -> int:
        """The bytes of the model in float32, in which it is compared: its weights, and its caches of fixed length in
        the largest case."""
        task = self.tasks[-1]
        caches = [value.dims[1:] for value in task.inputs if task.cache_slots in value.dims[2:3]]
        held = sum(math.prod(dim for dim in dims if isinstance(dim, int)) for dims in caches)
        return 4 * (weight_count(self.model) + ROWS * held)

    def quantization(self, task: Task) -> Quantization | None:
        """How the weights of a task's graph are quantized; None for a float precision."""
        options, decodes = self.options, self.spec.decodes
        return quantization_of(
            self.precision,
            self.target,
            decodes=decodes,
            graph_decodes=decodes and task.name != ENCODER,
            blocks=Blocks(4, options.block_size, not options.asymmetric),
            table_bits=4 if options.head_precision == "int4" else 8,
            own={**prequantized_blocks(self.quantized), **self.more_bits},
            static_inputs=options.activations == "static",
        )
