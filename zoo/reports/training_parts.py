"""The parts of a training step: FLOPs of each, and the tensors that it saves, kept while its part of the spec stays.

A model of several stacks is traced part by part, such as an image encoder and the decoder that reads its vectors. The figures are
those of one trace: a part states which tensors it hands on, and which of those that it was handed it saves.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import fx

from specs.model.model import Model
from zoo.core.remembering import has_plugin, remembered_by
from zoo.ops import TensorInfo
from zoo.ops.operation import CALLS
from zoo.ops.saved import SavedTensor
from zoo.reports.folding import layer_path
from zoo.reports.polynomial import Polynomial
from zoo.reports.saved_tensors import root, saved_tensors, trained_values
from zoo.reports.trace import Trace, outputs_by_name
from zoo.tracing.task import Task
from zoo.tracing.tasks import training_tasks
from zoo.tracing.traced_model import TracedModel, task_key

ByLayer = Mapping[str, Polynomial]
"""A figure by the path of a layer; of everything outside layers, by the empty path."""


@dataclass(frozen=True)
class KeptTensor:
    """A tensor in memory until the backward pass: its name, unique in the model, and its bytes.

    ``layer``: the layer whose forward pass saves it, or None; ``owner``: that layer, or the one whose weights the call has that
    saves it, or an empty path.
    """

    value: Hashable
    bytes: Polynomial
    layer: str | None
    owner: str


@dataclass(frozen=True)
class TrainingPart:
    """FLOPs of a part's matrix products, forward, backward, and of the layers' forward pass, and its tensors.

    ``fused`` and ``unfused``: those that its calls save; ``operands``: those that layers read from outside; ``outputs``: those that
    it returns, by the name under which a later part reads them.
    """

    forward: ByLayer
    backward: ByLayer
    layers: ByLayer
    fused: tuple[KeptTensor, ...]
    unfused: tuple[KeptTensor, ...]
    operands: tuple[KeptTensor, ...]
    outputs: tuple[tuple[Hashable, KeptTensor], ...]


def training_parts(spec: Model, dtypes: tuple[torch.dtype, ...]) -> list[dict[torch.dtype, TrainingPart]]:
    """The parts of a step in the order in which they run, each by dtype of the weights."""
    shared = set(dtypes) == {torch.float16, torch.float32} and not has_plugin(spec)
    read = [(torch.float16, dtypes)] if shared else [(dtype, (dtype,)) for dtype in dtypes]
    by_dtype = [_parts(TracedModel(spec, traced), wanted) for traced, wanted in read]
    return [
        {dtype: part for variants in parts for dtype, part in variants.items()}
        for parts in zip(*by_dtype, strict=True)
    ]


def _parts(traced: TracedModel, dtypes: tuple[torch.dtype, ...]) -> list[dict[torch.dtype, TrainingPart]]:
    traced.model.train()
    trained, parts = frozenset[str](), list[dict[torch.dtype, TrainingPart]]()
    for task in training_tasks(traced.model, traced.spec, traced.outputs):
        part, learned = _part((traced, task), dtypes, trained)
        parts.append(part)
        trained |= learned
    return parts


@remembered_by(task_key)
def _part(
    subject: tuple[TracedModel, Task], dtypes: tuple[torch.dtype, ...], trained: frozenset[str]
) -> tuple[dict[torch.dtype, TrainingPart], frozenset[str]]:
    """A part of a step by dtype, and the outputs of it that get a gradient; ``trained``: such outputs of earlier parts.

    The part in float32 is that in float16 without casts.
    """
    traced, task = subject
    step = _Step(traced, task, trained)
    parts = {traced.dtype: step.part()}
    for dtype in dtypes:
        if dtype != traced.dtype:
            step.to_float32()
            parts[dtype] = step.part()
    return parts, step.learned


class _Step:
    """The trace of a part of a training step."""

    def __init__(self, traced: TracedModel, task: Task, trained: frozenset[str]) -> None:
        self._task = task
        self._trace = Trace(traced.trace(task).graph, task)
        for node in self.graph.nodes:
            if node.op == "placeholder" and node.target in trained:
                node.meta["trained"] = True
        self._layers = {
            f"{name}.blocks.{layer}" for name, stack in traced.spec.stacks() for layer in range(stack.depth)
        }
        self.layer_of = {node: _layer(node, self._layers) for node in self.graph.nodes}
        self._owners = self._layers_of_weights()
        self._trained = trained_values(self.graph)
        self._bytes: dict[SavedTensor, Polynomial] = {}

    @property
    def graph(self) -> fx.Graph:
        return self._trace.graph

    @property
    def learned(self) -> frozenset[str]:
        """The outputs that get a gradient, by the names under which later parts read them."""
        outputs = outputs_by_name(self.graph).items()
        return frozenset(f"{self._task.name}.{name}" for name, node in outputs if node in self._trained)

    def to_float32(self) -> None:
        """Make this the part with weights in float32 in place of float16."""
        self._trace.to_float32()
        self._bytes.clear()

    def part(self) -> TrainingPart:
        """The part."""
        fused, unfused = (
            tuple(map(self._kept, saved_tensors(self.graph, self._trained, fused=fused), itertools.count()))
            for fused in (True, False)
        )
        returned = self.graph.output_node()
        outputs = tuple(
            (("input", f"{self._task.name}.{name}"), self._kept(SavedTensor(returned, root(result))))
            for name, result in outputs_by_name(self.graph).items()
        )
        operands = tuple(map(self._kept, self._operands()))
        return TrainingPart(*self._passes, fused, unfused, operands, outputs)

    def _kept(self, tensor: SavedTensor, index: int = 0) -> KeptTensor:
        """A tensor that is saved, the one at an index of several."""
        if tensor not in self._bytes:
            self._bytes[tensor] = self._trace.polynomial(tensor.by, tensor.bytes_at)
        layer = self.layer_of[tensor.by]
        return KeptTensor(self._value(tensor, index), self._bytes[tensor], layer, self._owners[tensor.by])

    def _value(self, tensor: SavedTensor, index: int) -> Hashable:
        """The name of a tensor: inputs and weights have the same in all parts."""
        if tensor.extra is not None:
            return self._task.name, index
        if tensor.value.op == "placeholder":
            return "input", tensor.value.target
        if tensor.value.op == "get_attr":
            return "weight", tensor.value.target
        return self._task.name, tensor.value.name

    def _operands(self) -> Iterable[SavedTensor]:
        """The tensors that layers read from outside, each once."""
        tensors: dict[fx.Node, SavedTensor] = {}
        for node in self.graph.nodes:
            for operand in node.all_input_nodes if self.layer_of[node] else ():
                outside = self.layer_of[operand] != self.layer_of[node] and operand.op != "get_attr"
                if outside and isinstance(operand.meta["info"][0], TensorInfo):
                    tensors.setdefault(root(operand), SavedTensor(node, root(operand)))
        return tensors.values()

    @cached_property
    def _passes(self) -> tuple[ByLayer, ByLayer, ByLayer]:
        """FLOPs of the matrix products: forward, backward, and of the layers' forward pass."""
        forward, backward, layers = (list[tuple[str, Polynomial]]() for _ in range(3))
        for node in self._trace.calls:
            products, _ = self._trace.flops(node)
            if not products:
                continue
            owner = self._owners[node]
            forward.append((owner, products))
            backward.append((owner, products * _gradients(node, self._trained)))
            if self.layer_of[node]:
                layers.append((owner, products))
        return by_layer(forward), by_layer(backward), by_layer(layers)

    def _layers_of_weights(self) -> dict[fx.Node, str]:
        """The layer of every call, or an empty path.

        A call outside the forward pass of a layer with the layer's weights is the layer's too, such as keys of cross-attention. So is
        a call on the results of such calls of a single layer, such as the mask of its relative biases.
        """
        owners: dict[fx.Node, str] = {}
        for node in self.graph.nodes:
            layer = self.layer_of[node] or layer_path(node.meta.get("path", ""))
            if layer not in self._layers:
                outside = (operand for operand in node.all_input_nodes if not self.layer_of[operand])
                layers = {owners[operand] for operand in outside} - {""}
                layer = layers.pop() if len(layers) == 1 and node.op in CALLS else ""
            owners[node] = layer
        return owners


def by_layer(parts: Iterable[tuple[str, Polynomial]]) -> dict[str, Polynomial]:
    """The sum of the figures of each layer."""
    terms: dict[str, list[Polynomial]] = {}
    for layer, part in parts:
        terms.setdefault(layer, []).append(part)
    return {layer: Polynomial.sum(part) for layer, part in terms.items()}


def _layer(node: fx.Node, blocks: Set[str]) -> str | None:
    """The layer whose forward pass computes a value, or None."""
    return next((path for path in node.meta.get("within", ()) if path in blocks), None)


def _gradients(node: fx.Node, trained: Set[fx.Node]) -> int:
    """The number of factors of a product that get a gradient; for attention the query and key count for both products."""
    if node not in trained:
        return 0
    factors = [factor for factor in node.args[:2] if factor in trained]
    return len(factors)
