"""The model that is checked: the given one, or a reduced model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import torch

from specs.base.errors import UserError
from specs.model.model import Model
from zoo.builder import ZooModel, assemble
from zoo.checks.probe import ProbeWeights
from zoo.core.reduced import reduced_models, small_inputs
from zoo.machine.memory import available_memory
from zoo.weights.materialize import materialize
from zoo.weights.source import WeightSource

MAX_PARAMETERS = 160_000_000
"""The largest model that is checked itself; larger ones are replaced by a reduced model."""

REDUCED_PARAMETERS = 80_000_000
"""The largest reduced model: a larger one proves no more."""

_DRAWS = 4
_REDRAWN_PARAMETERS = 2_000_000
_BYTES = 8  # float64
_MEMORY_SHARE = 0.4  # for the weights; gradients need at most as much again


@dataclass(frozen=True)
class CheckedModel:
    """The checked spec and its model in float64. ``description`` says whether it is a reduced model."""

    spec: Model
    model: ZooModel
    weights: WeightSource
    description: str

    def draws(self) -> Iterator[int]:
        """Yield once with the given weights, then, for a small model with random weights, with further draws.

        A few narrow layers can lose a signal by chance, such as when all units of a ReLU are off, but not for every
        draw.
        """
        yield 0
        if isinstance(self.weights, ProbeWeights) and _size(self.model) <= _REDRAWN_PARAMETERS:
            for draw in range(1, _DRAWS):
                materialize(self.model, ProbeWeights(self.model, self.spec, self.weights.seed + 1000 * draw))
                yield draw


def subject_of(spec: Model, weights: WeightSource | None = None, seed: int = 0) -> CheckedModel:
    """The model of a spec with weights, or a reduced model with random ones where it is too large.

    Raises :class:`UserError` where no reduced model is small enough.
    """
    limit = min(MAX_PARAMETERS, int(available_memory() * _MEMORY_SHARE / _BYTES))
    size = 0
    whole = spec if weights else small_inputs(spec)
    itself = "the model itself" if whole is spec else "the model with small images and short audio"
    for candidate, description in chain([(whole, itself)], reduced_models(whole)):
        model = assemble(candidate, torch.float64)
        size = _size(model)
        if size <= (limit if candidate is whole else min(limit, REDUCED_PARAMETERS)):
            source = weights if weights and candidate is spec else ProbeWeights(model, candidate, seed)
            materialize(model, source)
            return CheckedModel(candidate, model, source, description)
    raise UserError(
        f"{spec.name} is too large to check: even a narrow reduced model has {size:,} parameters; at most {limit:,} are allowed\n"
        "  Check a narrower variant, or use a machine with more memory."
    )


def _size(model: ZooModel) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
