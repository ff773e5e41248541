"""The origin of every tensor of a variant: which tensors of a checkpoint, and by which rule."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from specs.model.model import Model
from zoo.adapting.layers import LayerSources
from zoo.adapting.matching import Pair, rule_of
from zoo.adapting.rules import COPIED, Derivation
from zoo.core.initialization import Distribution, distributions
from zoo.core.tensors import fixed_values, weight_tensors

_LAYER = re.compile(r"(\w+)\.blocks\.(\d+)\.(.*)")
_EXPERT = ".feed_forward.experts."


@dataclass(frozen=True)
class Origin:
    """The origin of a tensor: the source's tensors that ``rule`` reads, by their mean if there are several.

    Without a ``rule`` no tensor of the source can give it, and ``text`` says what does.
    """

    tensor: str
    sources: tuple[str, ...]
    text: str
    rule: Derivation | None = None

    def as_dict(self) -> dict[str, object]:
        """The origin as JSON data."""
        return {"tensor": self.tensor, "sources": list(self.sources), "rule": self.text}


@dataclass(frozen=True)
class Plan:
    """The origins of all tensors, and the tensors of the source that none of them reads."""

    origins: tuple[Origin, ...]
    unused: tuple[str, ...]


class Planner:
    """Finds the origin of each tensor of ``variant`` in ``source``, two specs with their modules."""

    def __init__(
        self,
        source: tuple[Model, nn.Module],
        variant: tuple[Model, nn.Module],
        stacks: Mapping[str, str],
        layers: Mapping[str, LayerSources],
    ) -> None:
        (self._source_spec, self._source), (self._spec, self._model) = source, variant
        self._stacks, self._layers = stacks, layers
        self._stored = dict(weight_tensors(self._source, remove_duplicate=False))
        first = {id(tensor): name for name, tensor in weight_tensors(self._source)}
        self._first = {name: first[id(tensor)] for name, tensor in self._stored.items()}
        self._fixed = fixed_values(self._model)
        self._recipe = distributions(self._model, self._spec)

    def plan(self) -> Plan:
        """The origins, in the order of the variant's tensors."""
        names: dict[int, list[str]] = {}
        for name, tensor in weight_tensors(self._model, remove_duplicate=False):
            names.setdefault(id(tensor), []).append(name)
        origins = tuple(self._origin(tensor, names[id(tensor)]) for _, tensor in weight_tensors(self._model))
        used = {name for origin in origins for name in origin.sources}
        unused = tuple(name for name in dict.fromkeys(self._first.values()) if name not in used)
        return Plan(origins, unused)

    def _origin(self, tensor: Tensor, names: list[str]) -> Origin:
        """The origin of a tensor with these names, its own first."""
        for name in names:
            for stored in self._counterparts(name):
                pairs = [
                    Pair(name, counterpart, tensor, self._stored[counterpart], self._model, self._source)
                    for counterpart in stored
                ]
                rules = [rule_of(pair, self._spec, self._source_spec) for pair in pairs]
                if (
                    all(rule is not None for rule in rules)
                    and len({rule.text for rule in rules if rule}) == 1
                ):
                    assert rules[0] is not None
                    text = _by_mean(rules[0].text, len(stored))
                    return Origin(
                        names[0], tuple(self._first[counterpart] for counterpart in stored), text, rules[0]
                    )
        if names[0] in self._fixed:
            return Origin(names[0], (), "computed")
        return Origin(names[0], (), _drawn(self._recipe[names[0]]))

    def _counterparts(self, name: str) -> Iterator[tuple[str, ...]]:
        """The names in the source of what may become a tensor, as far as the source has them."""
        mapped = self._mapped(name)
        candidates = [mapped]
        if _EXPERT in name:
            candidates.append(tuple(source_name.replace(_EXPERT, ".feed_forward.") for source_name in mapped))
        yield from (
            stored
            for stored in candidates
            if stored and all(source_name in self._stored for source_name in stored)
        )

    def _mapped(self, name: str) -> tuple[str, ...]:
        if layer := _LAYER.fullmatch(name):
            stack, number, rest = layer[1], int(layer[2]), layer[3]
            return tuple(
                f"{self._stacks[stack]}.blocks.{index}.{rest}" for index in self._layers[stack][number]
            )
        prefix, _, rest = name.partition(".")
        for stack, origin in self._stacks.items():
            if prefix == stack:
                return (f"{origin}.{rest}",)
            if prefix == embedding_name(self._spec, stack):
                return (f"{embedding_name(self._source_spec, origin)}.{rest}",)
        return (name,)


def _by_mean(text: str, layers: int) -> str:
    """The text of a rule that reads the mean of some layers."""
    if layers == 1:
        return text
    return f"mean of {layers} layers" + ("" if text == COPIED.text else f", then {text}")


def embedding_name(spec: Model, stack: str) -> str:
    """The name of the embedding of a stack in a model."""
    alone = spec.architecture in ("encoder", "decoder") or (spec.architecture, stack) == (
        "vision-language",
        "decoder",
    )
    return "embedding" if alone else f"{stack}_embedding"


def _drawn(distribution: Distribution) -> str:
    if distribution.values is not None:
        return "as the module sets it"
    if distribution.constant is not None:
        return f"constant {distribution.constant:g}"
    if distribution.bound:
        return f"drawn, uniform within {distribution.bound:.3g}"
    return f"drawn, standard deviation {distribution.std:.3g}"
