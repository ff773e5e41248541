"""The model that is checked: the one asked for, or a smaller one wired alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import torch

from specs.errors import UserError
from specs.model import Model
from zoo.builder import ZooModel, assemble
from zoo.checks.probe import ProbeWeights
from zoo.memory import available_memory
from zoo.twin import small_inputs, twins
from zoo.weights.materialize import materialize
from zoo.weights.source import WeightSource

MAX_PARAMETERS = 160_000_000
"""What is checked as it is; a larger model is checked on a twin."""

TWIN_PARAMETERS = 80_000_000
"""What a twin may have: it proves no more by being larger."""

_DRAWS = 4
_REDRAWN_PARAMETERS = 2_000_000
_BYTES = 8  # float64
_MEMORY_SHARE = 0.4  # for the weights; gradients need as much again at most


@dataclass(frozen=True)
class Subject:
    """What is run: a spec and its model in float64.  ``description`` tells a twin from the model itself."""

    spec: Model
    model: ZooModel
    weights: WeightSource
    description: str

    def draws(self) -> Iterator[int]:
        """Once with the weights there are, then, for a small model with random weights, with others in place.

        A few narrow layers can lose a signal by chance, such as all units of a ReLU being off, but not always.
        """
        yield 0
        if isinstance(self.weights, ProbeWeights) and _size(self.model) <= _REDRAWN_PARAMETERS:
            for draw in range(1, _DRAWS):
                materialize(self.model, ProbeWeights(self.model, self.spec, self.weights.seed + 1000 * draw))
                yield draw


def subject_of(spec: Model, weights: WeightSource | None = None, seed: int = 0) -> Subject:
    """The model of a spec with weights, or a twin with random ones where it is too large.

    Raises :class:`UserError` where no twin is small enough.
    """
    limit = min(MAX_PARAMETERS, int(available_memory() * _MEMORY_SHARE / _BYTES))
    size = 0
    whole = spec if weights else small_inputs(spec)
    itself = "the model itself" if whole is spec else "the model, for images and sounds of a few vectors"
    for candidate, description in chain([(whole, itself)], twins(whole)):
        model = assemble(candidate, torch.float64)
        size = _size(model)
        if size <= (limit if candidate is whole else min(limit, TWIN_PARAMETERS)):
            source = weights if weights and candidate is spec else ProbeWeights(model, candidate, seed)
            materialize(model, source)
            return Subject(candidate, model, source, description)
    raise UserError(
        f"{spec.name} is too large to check: even a narrow twin has {size:,} parameters, of at most {limit:,}"
    )


def _size(model: ZooModel) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
