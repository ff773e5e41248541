"""FLOPs and activations of a training step, from the trace of the whole forward pass.

The backward pass has one matrix product of the same size for every gradient of a forward product: for its weight, and for its
input if a parameter precedes it. Activations are the tensors that autograd saves; with checkpointing, the inputs of every layer,
plus the activations of one recomputed layer at a time.

A reduced model with one layer of each kind is traced, and one model per kind with an additional layer: the difference is the
layer's contribution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
from torch import fx

from specs.model.model import Model
from zoo.builder import assemble
from zoo.core.collector import collector_paused
from zoo.core.reduced import fewer_layers
from zoo.ops import TensorInfo
from zoo.ops.saved import SavedTensor
from zoo.reports.flops import matmul_flops_at
from zoo.reports.layers import layer_kinds, with_another
from zoo.reports.polynomial import Polynomial
from zoo.reports.saved_tensors import root, saved_tensors, trained_values
from zoo.reports.trace import Trace, outputs_by_name, traced
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


@collector_paused()
def training(spec: Model, dtype: torch.dtype = torch.float32) -> Training:
    """The costs of a training step of a spec's model, with weights in a dtype.

    Raises the errors of :func:`zoo.reports.costs.costs`.
    """
    small = fewer_layers(spec, layers=1)
    base = _Step.of(small, dtype)
    total, kinds = base.sums, layer_kinds(spec, small)
    for kind, layers in kinds.items():
        if len(layers) > 1:
            longer = _Step.of(with_another(small, kind), dtype).sums
            total = {
                name: total[name] + (longer[name] - base.sums[name]) * (len(layers) - 1) for name in total
            }
    passes = Passes(*(total[part] for part in ("forward", "backward", "layers")))
    checkpointed = Checkpointed(total["inputs"], tuple(dict.fromkeys(base.recomputed())))
    return Training(passes, total["kept"], total["unfused"], checkpointed)


@dataclass(frozen=True)
class _Step:
    """The sums of one trace by name, and a function for the bytes that each layer saves in addition to its inputs."""

    sums: dict[str, Polynomial]
    recomputed: Callable[[], list[Polynomial]]

    @classmethod
    def of(cls, spec: Model, dtype: torch.dtype) -> _Step:
        model = assemble(spec, dtype)
        model.train()
        task = training_task(spec)
        trace = Trace(traced(model, task), task)
        blocks = [f"{name}.blocks.{layer}" for name, stack in spec.stacks() for layer in range(stack.depth)]
        layer_of = {node: _layer(node, blocks) for node in trace.graph.nodes}
        trained = trained_values(trace.graph)
        sums = _passes(trace, layer_of, trained)

        @cache
        def bytes_of(tensor: SavedTensor) -> Polynomial:
            return trace.polynomial(tensor.by, tensor.bytes_at)

        def size(kept: Iterable[SavedTensor]) -> Polynomial:
            return Polynomial.sum(map(bytes_of, kept))

        def recomputed() -> list[Polynomial]:
            return [size(kept for kept in inner if layer_of[kept.by] == block) for block in blocks]

        fused = saved_tensors(trace.graph, trained, fused=True)
        inputs = _inputs(trace.graph, fused, layer_of)
        there = {kept.value for kept in inputs if kept.extra is None}
        inner = [kept for kept in fused if layer_of[kept.by] and (kept.extra or kept.value not in there)]
        sums |= {
            "kept": size(fused),
            "unfused": size(saved_tensors(trace.graph, trained, fused=False)),
            "inputs": size(inputs),
        }
        return cls(sums, recomputed)


def _layer(node: fx.Node, blocks: Iterable[str]) -> str | None:
    """The layer whose forward pass computes a value, or None."""
    return next((block for block in blocks if block in node.meta.get("within", ())), None)


def _passes(
    trace: Trace, layer_of: dict[fx.Node, str | None], trained: Set[fx.Node]
) -> dict[str, Polynomial]:
    parts: dict[str, list[Polynomial]] = {part: [] for part in ("forward", "backward", "layers")}
    for node in trace.calls:
        products = trace.polynomial(node, partial(matmul_flops_at, node))
        if not products:
            continue
        parts["forward"].append(products)
        parts["backward"].append(products * _gradients(node, trained))
        if layer_of[node]:
            parts["layers"].append(products)
    return {name: Polynomial.sum(part) for name, part in parts.items()}


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
    for result in outputs_by_name(graph).values():
        tensors.setdefault(root(result), SavedTensor(result, root(result)))
    return list(tensors.values())
