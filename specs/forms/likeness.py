"""How alike two architectures are: the shared weight of what their specs state, from 0 to 1."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from specs.forms.canonical import canonical
from specs.model.model import Model
from specs.model.stack import STACKS

Features = Mapping[tuple[str, Any], float]
"""The weight of each path with its value; values of layers weigh by the share of the layers that have them."""

_KIND = 3.0
"""The weight of a kind, where a number or another value weighs 1."""


def features(model: Model) -> Features:
    """The weighted features of the computation that a spec states."""
    weights = defaultdict[tuple[str, Any], float](float)
    data = canonical(model)
    stacks = {name: data.pop(name) for name in STACKS if name in data}
    for name, stack in stacks.items():
        part = name if len(stacks) > 1 else "stack"  # an encoder is compared with a decoder
        layers = stack.pop("layers")
        _count(stack, part, 1.0, weights)
        weights[f"{part}.layers", _step(len(layers))] += 1.0
        uses = defaultdict[int, float](float)
        for layer in layers:
            uses[id(layer)] += 1 / len(layers)
        for layer in {id(layer): layer for layer in layers}.values():
            _count(layer, f"{part}.layer", uses[id(layer)], weights)
    _count(data, "", 1.0, weights)
    return weights


class Likenesses:
    """The likeness of a spec to each of many: the weight that two share, as a fraction of the weight of both."""

    def __init__(self, known: Mapping[str, Features]) -> None:
        self._names = list(known)
        self._totals = [_total(features.values()) for features in known.values()]
        self._having = defaultdict[tuple[str, Any], list[tuple[int, float]]](list)
        for index, features in enumerate(known.values()):
            for feature, weight in features.items():
                self._having[feature].append((index, weight))

    def to(self, own: Features) -> dict[str, float]:
        """The likeness to each, by name, from 0 to 1."""
        shared = [0.0] * len(self._names)
        for feature, weight in own.items():
            for index, other in self._having.get(feature, ()):
                shared[index] += weight if weight < other else other
        total = _total(own.values())
        return {
            name: part / (total + other - part)
            for name, part, other in zip(self._names, shared, self._totals, strict=True)
        }


def _total(weights: Iterable[float]) -> float:
    """The sum in the order of the weights, as shared weights are summed, so that equal specs are wholly alike."""
    total = 0.0
    for weight in weights:
        total += weight
    return total


def _count(part: Any, path: str, share: float, weights: dict[tuple[str, Any], float]) -> None:
    for name, value in _values(part, path):
        is_kind = name.endswith(".kind")
        if type(value) in (int, float):  # near numbers share their magnitude
            weights[name, _step(value)] += share / 2
        weights[name, value] += share * (_KIND if is_kind else 0.5 if type(value) in (int, float) else 1.0)


def _step(value: float) -> tuple[str, int]:
    """The magnitude of a number, in steps of a factor of two."""
    return "about", round(math.log2(abs(value))) if value else -999


def _values(part: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The paths and values within a part; what is absent or off says nothing."""
    if isinstance(part, Mapping):
        for key, value in part.items():
            yield from _values(value, f"{path}.{key}")
    elif isinstance(part, list):
        yield path, str(part)
    elif part is not None and part is not False:
        yield path, part
