"""How alike two architectures are: the shared weight of their settings, from 0 to 1."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from specs.forms.canonical import canonical, distinct
from specs.model.model import Model

Features = Mapping[tuple[str, Any], float]
"""The weight of each setting: its path and value, or the magnitude of a number."""

KIND_WEIGHT = 3
"""The weight of a kind, where another setting weighs 1."""

_PARTS = {"encoder": "stack", "decoder": "stack", "text": "stack", "image": "image"}
"""The first part of the paths in a stack: stacks of tokens are compared with each other."""


def settings(model: Model) -> Iterator[tuple[str, Any, float]]:
    """The path and value of each setting of the computation, and the share of the layers that have it.

    Absent settings, and those that are off, have none; equal items of a list are one.
    """
    data = canonical(model)
    stacks = {name: data.pop(name) for name in _PARTS if name in data}
    depths = Counter[str]()
    for name, stack in stacks.items():
        depths[_PARTS[name]] += len(stack["layers"])
    yield from _settings(data, "", 1.0)
    for name, stack in stacks.items():
        part, layers = _PARTS[name], stack.pop("layers")
        del stack["same_as"]
        share = len(layers) / depths[part]
        yield from _settings({**stack, "layers": len(layers)}, part, share)
        uses = Counter(map(id, layers))
        for layer in distinct(layers):
            yield from _settings(layer, f"{part}.layers", share * uses[id(layer)] / len(layers))


def _settings(value: Any, path: str, share: float) -> Iterator[tuple[str, Any, float]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _settings(inner, f"{path}.{key}" if path else key, share)
    elif isinstance(value, list):
        for inner in distinct(value):
            yield from _settings(inner, path, share)
    elif value is not None and value is not False and value != "":
        yield path, value, share


def is_number(value: Any) -> bool:
    """Whether a setting is a number, which says how large a part is rather than which."""
    return type(value) in (int, float)


def weight_of(path: str) -> int:
    """The weight of a setting by its path; the architecture counts as a kind."""
    return KIND_WEIGHT if path.endswith(("kind", "architecture")) else 1


def features(model: Model) -> Features:
    """The weighted features of the computation that a spec states; near numbers share their magnitude."""
    weights = defaultdict[tuple[str, Any], float](float)
    for path, value, share in settings(model):
        if is_number(value):
            weights[path, ("about", round(math.log2(abs(value))) if value else -999)] += share / 2
            weights[path, value] += share / 2
        else:
            weights[path, value] += share * weight_of(path)
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
