"""The cost of the low form of each group of matrices, measured on cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from exporters.graph.quantization.matrix import QuantizedMatrix
from exporters.rounding.bit_choice import Group, Key
from exporters.rounding.sensitivity import sensitivities
from exporters.verification.cases import Case
from specs.model.model import Model
from zoo.builder import ZooModel
from zoo.core.progress import Progress, Stage
from zoo.core.tensors import weight_tensors
from zoo.weights.blocks import Quantized
from zoo.weights.source import WeightSource

Measure = Callable[[Sequence[Group]], Mapping[Key, float]]
"""Returns the cost of the low form of each group."""


def changes_of(source: WeightSource, group: Group, model: ZooModel, dtype: torch.dtype) -> dict[str, Tensor]:
    """The change of each weight in a group's low form, in bfloat16."""
    blocks, changes = group.low.blocks, dict[str, Tensor]()
    assert blocks is not None
    held = dict(weight_tensors(model))
    for name in group.weights:
        width = held[name].shape[-1]
        matrix = QuantizedMatrix((name,), width, blocks, "blocks", dtype)
        rounded = blocks.restore(Quantized.joined(matrix.rounded(source, name)), width)
        changes[name] = (rounded.view_as(held[name]) - held[name]).to(torch.bfloat16)
    return changes


def measured(
    spec: Model,
    model: Any,
    source: WeightSource,
    cases: Sequence[Case],
    dtype: torch.dtype,
    progress: Progress,
) -> Measure:
    """Return a measure of groups on cases, with the weights of ``source`` in their stored form."""

    def measure(groups: Sequence[Group]) -> Mapping[Key, float]:
        changes = {}
        for done, group in enumerate(groups):
            progress(Stage(f"mixed precision: round {done + 1} of {len(groups)} groups"))
            changes[group.weights] = changes_of(source, group, model, dtype)

        def report(done: int, count: int) -> None:
            progress(Stage(f"mixed precision: measure {len(groups)} groups, input {done + 1} of {count}"))

        return sensitivities(spec, model, cases, changes, report)

    return measure
