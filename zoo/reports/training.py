"""FLOPs and activations of a training step, from the trace of the whole forward pass.

The backward pass has one matrix product of the same size for every gradient of a forward product: for its weight, and for its
input if a parameter precedes it. Activations are the tensors that autograd saves; with checkpointing, the inputs of every layer,
plus the activations of one recomputed layer at a time.  The parts of a model are traced one by one
(:mod:`zoo.reports.training_parts`).

A reduced model with one layer of each kind is traced, and one model per kind with an additional layer: the difference is the
layer's contribution.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch

from specs.model.model import Model
from zoo.core.collector import collector_paused
from zoo.core.reduced import fewer_layers
from zoo.core.remembering import remembered
from zoo.reports.layers import layer_kinds, with_second_layers
from zoo.reports.polynomial import Polynomial
from zoo.reports.training_parts import ByLayer, KeptTensor, TrainingPart, by_layer, training_parts


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
    parts = training_parts(spec, dtypes)
    layers = [f"{name}.blocks.{layer}" for name, stack in spec.stacks() for layer in range(stack.depth)]
    return {dtype: _joined([part[dtype] for part in parts], layers) for dtype in dtypes}


def _joined(parts: list[TrainingPart], layers: list[str]) -> _ReducedStep:
    """The step of a model from its parts, in the order in which they run: a tensor that two of them save counts for the first."""
    handed: dict[Hashable, KeptTensor] = {}
    fused, unfused, operands = (dict[Hashable, KeptTensor]() for _ in range(3))

    def known(kept: KeptTensor) -> KeptTensor:
        """A tensor of an earlier part by its own name, and with its own size."""
        first = handed.get(kept.value)
        return kept if first is None else replace(kept, value=first.value, bytes=first.bytes)

    outputs = list[KeptTensor]()
    for part in parts:
        for tensors, more in ((fused, part.fused), (unfused, part.unfused), (operands, part.operands)):
            for kept in map(known, more):
                tensors.setdefault(kept.value, kept)
        outputs = [known(kept) for _, kept in part.outputs]
        handed |= {name: kept for (name, _), kept in zip(part.outputs, outputs, strict=True)}
    for tensors in (fused, unfused):
        for kept in outputs:
            tensors.setdefault(kept.value, kept)
    inputs = {kept.value: kept for kept in fused.values() if kept.layer is None}
    for kept in (*operands.values(), *outputs):
        inputs.setdefault(kept.value, kept)
    inner = [kept for kept in fused.values() if kept.layer and kept.value not in inputs]
    within = by_layer((kept.layer or "", kept.bytes) for kept in inner)
    return _ReducedStep(
        forward=by_layer(item for part in parts for item in part.forward.items()),
        backward=by_layer(item for part in parts for item in part.backward.items()),
        layers=by_layer(item for part in parts for item in part.layers.items()),
        fused=_by_owner(fused.values()),
        unfused=_by_owner(unfused.values()),
        inputs=_by_owner(inputs.values()),
        recomputed=tuple(dict.fromkeys(within.get(layer, Polynomial({})) for layer in layers)),
    )


def _by_owner(tensors: Iterable[KeptTensor]) -> ByLayer:
    return by_layer((kept.owner, kept.bytes) for kept in tensors)
