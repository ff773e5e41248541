"""FLOPs and activations of a training step, from the trace of the whole forward pass.

The backward pass has one matrix product of the same size for every gradient of a forward product: for its weight, and for its
input if a parameter precedes it. Activations are the tensors that autograd saves; with checkpointing, the inputs of every layer,
plus the activations of one recomputed layer at a time.

A reduced model with one layer of each kind is traced, and one model per kind with an additional layer: the difference is the
layer's contribution.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import fx

from specs.model.model import Model
from zoo.builder import assemble
from zoo.core.collector import collector_paused
from zoo.core.reduced import fewer_layers
from zoo.core.remembering import has_plugin, remembered
from zoo.ops import TensorInfo
from zoo.ops.saved import SavedTensor
from zoo.reports.folding import layer_path
from zoo.reports.layers import layer_kinds, with_second_layers
from zoo.reports.polynomial import Polynomial
from zoo.reports.saved_tensors import add_outputs, root, saved_tensors, trained_values
from zoo.reports.trace import Trace, traced
from zoo.tracing.tasks import training_task


@dataclass(frozen=True)
class Checkpointed:
    """Bytes with activation checkpointing: ``kept`` throughout, plus one of ``layers`` at a time."""

    kept: Polynomial
    layers: tuple[Polynomial, ...]

    def at(self, **sizes: int) -> int:
        """The peak in bytes."""
        return self.kept.at(**sizes) + max((layer.at(**sizes) for layer in self.layers), default=0)

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {"kept": self.kept.as_dict(), "layers": [layer.as_dict() for layer in self.layers]}


@dataclass(frozen=True)
class Passes:
    """FLOPs of a training step's matrix products, and of the layers' forward pass, which checkpointing repeats."""

    forward: Polynomial
    backward: Polynomial
    layers: Polynomial

    @property
    def total(self) -> Polynomial:
        """Forward and backward."""
        return self.forward + self.backward

    @property
    def checkpointed(self) -> Polynomial:
        """Forward and backward with the layers' forward pass repeated."""
        return self.total + self.layers

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        parts = {"forward": self.forward, "backward": self.backward, "recomputed": self.layers}
        return {name: part.as_dict() for name, part in parts.items()}


@dataclass(frozen=True)
class Training:
    """A training step of B sequences with T tokens, and S encoder tokens in an encoder-decoder.

    ``activations``: bytes with fused attention and RMS norms; ``unfused``: bytes with separate steps.
    """

    passes: Passes
    activations: Polynomial
    unfused: Polynomial
    checkpointed: Checkpointed

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "matmul": self.passes.as_dict(),
            "activations": self.activations.as_dict(),
            "activations_unfused": self.unfused.as_dict(),
            "activations_checkpointed": self.checkpointed.as_dict(),
        }


def training(spec: Model, dtype: torch.dtype = torch.float32) -> Training:
    """The costs of a training step of a spec's model, with weights in a dtype.

    Raises the errors of :func:`zoo.reports.costs.costs`.
    """
    return trainings(spec, (dtype,))[dtype]


@collector_paused()
def trainings(spec: Model, dtypes: Collection[torch.dtype] = (torch.float32,)) -> dict[torch.dtype, Training]:
    """The costs of a training step by dtype of the weights, from one trace: see :func:`training`."""
    small = fewer_layers(spec, layers=1)
    longer, counts = with_second_layers(small, layer_kinds(spec, small))
    steps = _reduced(longer, tuple(dict.fromkeys(map(traced_dtype, dtypes))))

    def whole(parts: ByLayer) -> Polynomial:
        return Polynomial.sum(part * counts.get(layer, 1) for layer, part in parts.items())

    def training(step: _ReducedStep) -> Training:
        passes = Passes(whole(step.forward), whole(step.backward), whole(step.layers))
        checkpointed = Checkpointed(whole(step.inputs), step.recomputed)
        return Training(passes, whole(step.fused), whole(step.unfused), checkpointed)

    return {dtype: training(steps[traced_dtype(dtype)]) for dtype in dtypes}


def traced_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype that a step is read in: its values have the same size, and half dtypes share a reading."""
    return torch.float16 if dtype == torch.bfloat16 else dtype


ByLayer = Mapping[str, Polynomial]
"""A figure by the path of a layer; of everything outside layers, by the empty path."""


@dataclass(frozen=True)
class _ReducedStep:
    """A training step of a reduced model: FLOPs of its passes, and bytes of the tensors that each layer saves."""

    forward: ByLayer
    backward: ByLayer
    layers: ByLayer
    fused: ByLayer
    unfused: ByLayer
    inputs: ByLayer
    recomputed: tuple[Polynomial, ...]


@remembered
def _reduced(spec: Model, dtypes: tuple[torch.dtype, ...]) -> dict[torch.dtype, _ReducedStep]:
    """A step by dtype: the step in float32 is that in float16 without casts, unless a plugin's modules may ask for the dtype."""
    if set(dtypes) != {torch.float16, torch.float32} or has_plugin(spec):
        return {dtype: _Step(spec, dtype).reduced() for dtype in dtypes}
    step = _Step(spec, torch.float16)
    half = step.reduced()
    step.to_float32()
    return {torch.float16: half, torch.float32: step.reduced()}


class _Step:
    """The trace of a training step of a reduced model."""

    def __init__(self, spec: Model, dtype: torch.dtype) -> None:
        model = assemble(spec, dtype)
        model.train()
        task = training_task(spec)
        self._trace = Trace(traced(model, task), task)
        self._layers = [
            f"{name}.blocks.{layer}" for name, stack in spec.stacks() for layer in range(stack.depth)
        ]
        self.layer_of = {node: _layer(node, self._layers) for node in self.graph.nodes}
        self._trained = trained_values(self.graph)
        self._bytes: dict[SavedTensor, Polynomial] = {}

    def reduced(self) -> _ReducedStep:
        """The step."""
        fused, unfused = (saved_tensors(self.graph, self._trained, fused=fused) for fused in (True, False))
        inputs = _inputs(self.graph, fused, self.layer_of)
        input_values = {kept.value for kept in inputs if kept.extra is None}
        inner = [
            kept
            for kept in fused
            if self.layer_of[kept.by] and (kept.extra or kept.value not in input_values)
        ]
        return _ReducedStep(
            **self._passes,
            fused=self._by_layer(fused),
            unfused=self._by_layer(unfused),
            inputs=self._by_layer(inputs),
            recomputed=tuple(dict.fromkeys(self._recomputed(inner))),
        )

    def to_float32(self) -> None:
        """Make this the step with weights in float32 in place of float16."""
        self._trace.to_float32()
        self._bytes.clear()

    @property
    def graph(self) -> fx.Graph:
        return self._trace.graph

    def _by_layer(self, kept: Iterable[SavedTensor]) -> ByLayer:
        """The bytes of tensors, by the layer whose calls save them."""
        return _by_layer((self._owner(tensor.by), self._size(tensor)) for tensor in kept)

    def _recomputed(self, kept: Iterable[SavedTensor]) -> list[Polynomial]:
        """The bytes of the tensors that each layer saves within."""
        sizes = _by_layer((self.layer_of[tensor.by] or "", self._size(tensor)) for tensor in kept)
        return [sizes.get(layer, Polynomial({})) for layer in self._layers]

    @cached_property
    def _passes(self) -> dict[str, ByLayer]:
        """FLOPs of the matrix products: forward, backward, and of the layers' forward pass."""
        parts: dict[str, list[tuple[str, Polynomial]]] = {
            part: [] for part in ("forward", "backward", "layers")
        }
        for node in self._trace.calls:
            products, _ = self._trace.flops(node)
            if not products:
                continue
            owner = self._owner(node)
            parts["forward"].append((owner, products))
            parts["backward"].append((owner, products * _gradients(node, self._trained)))
            if self.layer_of[node]:
                parts["layers"].append((owner, products))
        return {name: _by_layer(part) for name, part in parts.items()}

    def _owner(self, node: fx.Node) -> str:
        """The layer of a call, or an empty path.

        A call outside the forward pass of a layer with the layer's weights is the layer's too, such as keys of cross-attention.
        """
        layer = self.layer_of[node] or layer_path(node.meta.get("path", ""))
        return layer if layer in self._layers else ""

    def _size(self, tensor: SavedTensor) -> Polynomial:
        if tensor not in self._bytes:
            self._bytes[tensor] = self._trace.polynomial(tensor.by, tensor.bytes_at)
        return self._bytes[tensor]


def _by_layer(parts: Iterable[tuple[str, Polynomial]]) -> dict[str, Polynomial]:
    terms = defaultdict[str, list[Polynomial]](list)
    for layer, part in parts:
        terms[layer].append(part)
    return {layer: Polynomial.sum(part) for layer, part in terms.items()}


def _layer(node: fx.Node, blocks: Iterable[str]) -> str | None:
    """The layer whose forward pass computes a value, or None."""
    return next((block for block in blocks if block in node.meta.get("within", ())), None)


def _gradients(node: fx.Node, trained: Set[fx.Node]) -> int:
    """The number of factors of a product that get a gradient; for attention the query and key count for both products."""
    if node not in trained:
        return 0
    factors = [factor for factor in node.args[:2] if factor in trained]
    return len(factors)


def _inputs(
    graph: fx.Graph, kept: Iterable[SavedTensor], layer_of: dict[fx.Node, str | None]
) -> list[SavedTensor]:
    """Tensors saved with checkpointing: inputs of layers, tensors saved outside layers, and outputs."""
    tensors: dict[Any, SavedTensor] = {}
    for tensor in kept:
        if layer_of[tensor.by] is None:
            tensors[tensor.value if tensor.extra is None else tensor] = tensor
    for node in graph.nodes:
        for operand in node.all_input_nodes if layer_of[node] else ():
            outside = layer_of[operand] != layer_of[node] and operand.op != "get_attr"
            if outside and isinstance(operand.meta["info"][0], TensorInfo):
                tensors.setdefault(root(operand), SavedTensor(node, root(operand)))
    add_outputs(tensors, graph)
    return list(tensors.values())
