"""The cost of rounding each part of a model, with all other parts in float."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from exporters.data.stored_weights import alike
from exporters.quality.outputs import Outputs
from exporters.quality.quality import Cost
from exporters.quality.tallies import tally_for
from exporters.verification.cases import Case
from exporters.verification.reference import full_pass
from specs.model.model import Model
from zoo.core.tensors import weight_tensors
from zoo.weights.materialize import put

_BLOCK = re.compile(r"^(.*\bblocks\.\d+)\.(.+)$")


def layer_of(weight: str) -> str:
    """The layer of a weight, such as ``decoder.blocks.3``, or its outermost module outside layers."""
    match = _BLOCK.match(weight)
    return match[1] if match else weight.split(".")[0]


def role_of(weight: str) -> str:
    """The role of a weight, the same in all layers: ``attention.query``, or its outermost module outside layers."""
    match = _BLOCK.match(weight)
    if match is None:
        return weight.split(".")[0]
    parts = match[2].removesuffix(".weight").removesuffix(".bias").split(".")
    return ".".join(part for part in parts if not part.isdigit())


def blame(
    spec: Model,
    model: Any,
    stored: Iterable[tuple[str, Tensor]],
    cases: Sequence[Case],
    group_of: Callable[[str], str],
    progress: Callable[[str], None] = lambda part: None,
) -> tuple[Cost, ...]:
    """The cost of each group of rounded weights alone, in descending order.

    ``stored``: the weights in a file; the model's own are restored afterwards. A cost is the KL divergence from the float
    model in nats, or 1 - cosine for a model without scores.
    """
    held = dict(weight_tensors(model))
    groups: dict[str, dict[str, Tensor]] = {}
    for name, values in stored:
        if held[name].dim() > 1:
            groups.setdefault(group_of(name), {})[name] = values
    with torch.inference_mode():
        wanted = [full_pass(model, case) for case in cases]
        costs = []
        for group, weights in groups.items():
            progress(group)
            costs.append(Cost(group, _cost(spec, model, held, weights, cases, wanted)))
    return tuple(sorted(costs, key=lambda cost: -cost.cost))


def _cost(
    spec: Model,
    model: Any,
    held: Mapping[str, Tensor],
    weights: Mapping[str, Tensor],
    cases: Sequence[Case],
    wanted: Sequence[Outputs],
) -> float:
    rounded = {name: alike(held[name], values) for name, values in weights.items()}
    put(model, {id(held[name]): values for name, values in rounded.items()})
    try:
        tally = tally_for(spec)
        for case, outputs in zip(cases, wanted, strict=True):
            tally.add(case, outputs, full_pass(model, case))
    finally:
        put(model, {id(values): held[name] for name, values in rounded.items()})
    figures = tally.figures()
    return figures["kl"] if "kl" in figures else 1 - figures["cosine"]
