"""The size of an export's data file without writing it: the one answer that every command gives.

A reduced model with one layer of each kind is lowered and laid out as an export would be, and the weights of each
layer count once per layer of its kind.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import torch

from exporters.data.data_file import Region, aligned, lay_out
from exporters.graph.precisions import PRECISIONS, Precision, quantization_of
from exporters.graph.trace import TracedTask
from exporters.graph.translate import Lowering
from exporters.graph.values import Parameter
from exporters.target.targets import TARGETS, Target
from specs.model.model import Model
from zoo.core.collector import collector_paused
from zoo.core.reduced import fewer_layers
from zoo.core.remembering import has_plugin, remembered, remembered_by
from zoo.reports.layers import layer_kinds
from zoo.tracing.float_dtype import HALF
from zoo.tracing.task import ENCODER, Task
from zoo.tracing.tasks import stored_tasks
from zoo.tracing.traced_model import TaskTrace, TracedModel
from zoo.weights.blocks import Blocks

BLOCK = Blocks(4, 32)
"""The blocks of int4 by default."""

Layers = Mapping[str, Sequence[str]]
"""For each stack the kinds of its layers with their own weights, in order, such as ``decoder.blocks.0``."""


@dataclass(frozen=True)
class _Item:
    """The bytes of a stored tensor, and the kind of its layer; None for tensors outside layers."""

    length: int
    kind: str | None

    @property
    def stack(self) -> str | None:
        return None if self.kind is None else self.kind.split(".")[0]


@collector_paused()
def stored_sizes(spec: Model, target: str) -> dict[str, int]:
    """The size of the data file that ``zoo export`` writes for a target, in bytes, by precision.

    Raises :class:`specs.base.errors.UserError` for a model that cannot be exported.
    """
    shares = any(len(set(stack.owners())) < stack.depth for _, stack in spec.stacks())
    small = fewer_layers(
        spec, layers=2 if shares else 1
    )  # some targets keep weights that layers share in floats
    kinds = {layer: kind for kind, layers in _kinds(spec, small).items() for layer in layers}
    layers: Layers = {
        name: [kinds[name, layer] for layer in dict.fromkeys(stack.owners())] for name, stack in spec.stacks()
    }
    return {name: _size(items, layers) for name, items in _items_by_precision(small, target).items()}


@remembered
def _items_by_precision(small: Model, target: str) -> dict[str, list[_Item]]:
    """The stored tensors of a reduced model in the order of its data file, by precision."""
    row, keys, dtypes = TARGETS[target], dict[str, Hashable](), dict[Hashable, torch.dtype]()
    for name, precision in PRECISIONS.items():
        if name in row.unsupported_precisions:
            continue
        dtype = precision.dtype_on(row)
        taken = frozenset(operation for operation in row.operations if row.takes(operation, dtype))
        keys[name] = dtype.itemsize, taken  # these decide the size: float16 and bfloat16 are equally large
        dtypes.setdefault(keys[name], dtype)
    traces = _traces(small, set(dtypes.values()))
    lowered = {key: _LoweredModel(traces[dtype], row, dtype) for key, dtype in dtypes.items()}
    return {
        name: _items(
            [
                tensor
                for task in lowered[key].traces.tasks
                for tensor in _parameters((lowered[key], task), PRECISIONS[name])
            ]
        )
        for name, key in keys.items()
    }


def _kinds(spec: Model, small: Model) -> dict[str, list[tuple[str, int]]]:
    """The layers of each kind, as stack and index."""
    return {
        kind: [(kind.split(".")[0], layer) for layer in layers]
        for kind, layers in layer_kinds(spec, small).items()
    }


class _Traces:
    """The graphs of a reduced model with weights in several dtypes, each traced once, before one of them is fused."""

    def __init__(self, traced: TracedModel, dtypes: Collection[torch.dtype]) -> None:
        self.traced, self._dtypes = traced, dtypes
        self.tasks = stored_tasks(traced.model, traced.spec, traced.outputs)
        self._traces: dict[str, dict[torch.dtype, TaskTrace]] = {}

    def of(self, task: Task, dtype: torch.dtype) -> TaskTrace:
        """The trace of a task in a dtype."""
        if task.name not in self._traces:
            trace = self.traced.trace(task)
            self._traces[task.name] = {
                wanted: trace if wanted == self.traced.dtype else trace.in_dtype(wanted)
                for wanted in self._dtypes
            }
        return self._traces[task.name][dtype]


def _traces(small: Model, dtypes: Collection[torch.dtype]) -> dict[torch.dtype, _Traces]:
    """The graphs by dtype: all follow from those in float16, unless a plugin's component may depend on the dtype."""
    if has_plugin(small):
        return {dtype: _Traces(TracedModel(small, dtype), [dtype]) for dtype in dtypes}
    return dict.fromkeys(dtypes, _Traces(TracedModel.taken(small, HALF), dtypes))


class _LoweredModel:
    """The graphs of a reduced model with weights in a dtype, each lowered when it is needed."""

    def __init__(self, traces: _Traces, target: Target, dtype: torch.dtype) -> None:
        self.traces, self.target, self.dtype = traces, target, dtype
        self._lowered: dict[str, Lowering] = {}

    def lowering(self, task: Task) -> Lowering:
        """The operations of a task, in floats."""
        if task.name not in self._lowered:
            small, trace = self.traces.traced.spec, self.traces.of(task, self.dtype)
            inputs = tuple(
                replace(value, dtype=self.dtype) if value.dtype == HALF else value for value in task.inputs
            )
            context = small.context_length_of(small.last_stack)
            own = replace(task, inputs=inputs)
            self._lowered[task.name] = TracedTask.fused(trace, own, self.target, context).lowering()
        return self._lowered[task.name]


def _key(subject: tuple[_LoweredModel, Task]) -> Hashable | None:
    """All that the stored tensors of a task depend on."""
    lowered, task = subject
    traced = lowered.traces.traced
    known, spec = traced.key(task), traced.spec
    return known and (known, lowered.target.name, spec.decodes, spec.context_length_of(spec.last_stack))


@remembered_by(_key)
def _parameters(subject: tuple[_LoweredModel, Task], precision: Precision) -> list[Parameter]:
    """The stored tensors of a task in a precision, in order."""
    lowered, task = subject
    decodes = lowered.traces.traced.spec.decodes
    quantization = quantization_of(
        precision,
        lowered.target,
        decodes=decodes,
        graph_decodes=decodes and task.name != ENCODER,
        blocks=BLOCK,
        table_bits=8,
    )
    return list(lowered.lowering(task).parameters(quantization).values())


def _items(parameters: Sequence[Parameter]) -> list[_Item]:
    """The stored tensors of a reduced model, in the order of its data file."""
    regions = {region.offset: region for region in lay_out(parameters).values()}
    return [_Item(region.length, _kind(region)) for region in regions.values()]


def _kind(region: Region) -> str | None:
    """The layer of the reduced model whose weights a region holds, or None."""
    names = [name for name in region.content.names if ".attention.position." not in name]  # shared by layers
    layers = {".".join(name.split(".")[:3]) for name in names}
    return layers.pop() if len(layers) == 1 and ".blocks." in min(layers) else None


def _size(items: Sequence[_Item], layers: Layers) -> int:
    """The size of a data file with the items of each kind of layer repeated for every such layer."""
    end = 0
    for length in _repeated(items, layers):
        end = aligned(end, length) + length
    return end


def _repeated(items: Sequence[_Item], layers: Layers) -> Iterator[int]:
    """The lengths of all tensors; a tensor that occurs once per model but inside a layer counts with the first layer
    of its kind.

    A reduced model may have two layers of one kind under different names: the second counts for none.
    """
    for stack, run in groupby(_marked(items), lambda pair: pair[0]):
        stored = [item for _, item in run]
        if stack is None:
            yield from (item.length for item in stored)
            continue
        own: dict[str, list[_Item]] = {}
        kind = next(item.kind for item in stored if item.kind)
        for item in stored:
            kind = item.kind or kind
            own.setdefault(kind, []).append(item)
        seen = set[str]()
        for kind in layers[stack]:
            yield from (item.length for item in own.get(kind, ()) if item.kind or kind not in seen)
            seen.add(kind)


def _marked(items: Sequence[_Item]) -> list[tuple[str | None, _Item]]:
    """Each item with the stack whose layers it belongs to: the stack of the item before, if an item of it follows."""
    marked: list[tuple[str | None, _Item]] = []
    following: str | None = None
    after: list[str | None] = []
    for item in reversed(items):
        following = item.stack or following
        after.append(following)
    before: str | None = None
    for item, following in zip(items, reversed(after), strict=True):
        before = item.stack or before
        marked.append((before if before == following else None, item))
    return marked
