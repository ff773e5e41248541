"""What a family's checkpoints look like: a table that reads in both directions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from zoo.checkpoints.transforms import SAME, STACKED, Transform


@dataclass(frozen=True)
class Rule:
    """One stored tensor and the parameters it holds.

    In both names ``{layer}`` and the like stand for numbers.  ``also`` gives names that checkpoints
    may have in its place: they count where ``stored`` is not there.  Where ``beside`` is set, the rule holds only for a model that has that parameter
    too, and goes before one without.
    """

    stored: str
    parameters: tuple[str, ...]
    transform: Transform = SAME
    also: tuple[str, ...] = ()
    beside: str = ""


def same(stored: str, parameter: str, *, also: tuple[str, ...] = (), beside: str = "") -> Rule:
    """A tensor stored as it is."""
    return Rule(stored, (parameter,), also=also, beside=beside)


def affine(stored: str, module: str) -> tuple[Rule, Rule]:
    """The weight and the bias of a module, stored as they are."""
    return same(f"{stored}.weight", f"{module}.weight"), same(f"{stored}.bias", f"{module}.bias")


def fused(
    weight: str, bias: str, modules: tuple[str, ...], transform: Transform = STACKED
) -> tuple[Rule, Rule]:
    """The weights of several modules as one tensor (``transform`` is theirs), and their biases as another."""
    weights, biases = (tuple(f"{module}.{leaf}" for module in modules) for leaf in ("weight", "bias"))
    return Rule(weight, weights, transform), Rule(bias, biases, STACKED)


@dataclass(frozen=True)
class Slot:
    """The stored tensor of a parameter: its possible names, the first that is there counting, and the ``index`` of
    the parameter among the ``parameters`` that it holds."""

    stored: tuple[str, ...]
    parameters: tuple[str, ...]
    index: int = 0
    transform: Transform = SAME


@dataclass(frozen=True)
class Family:
    """The checkpoints of a family.

    ``rules`` name the body, ``heads`` each head by its kind in a spec.  Names outside ``outside`` may carry ``prefix``,
    and do where there is a head beyond ``bare_heads``; ``head_prefixes`` are of heads that have another.  ``renamed``
    gives endings that old files write otherwise.
    ``optional`` are tensors that a spec need not have a place for, such as other heads, and ``unused`` those that no model
    reads, such as buffers: patterns of whole names.
    """

    name: str
    model_types: tuple[str, ...]
    rules: tuple[Rule, ...]
    heads: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)
    prefix: str = ""
    head_prefixes: Mapping[str, str] = field(default_factory=dict)
    outside: tuple[str, ...] = ()
    bare_heads: tuple[str, ...] = ("none", "pooler", "pooled")
    renamed: Mapping[str, str] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    def plain(self, name: str) -> str:
        """A stored name without prefix and in its present spelling."""
        for prefix in (self.prefix, *self.head_prefixes.values()):
            name = name.removeprefix(prefix)
        for old, new in self.renamed.items():
            if name.endswith(old):
                return name.removesuffix(old) + new
        return name

    def full(self, name: str, head: str) -> str:
        """A plain stored name as the checkpoints of models with this head have it."""
        bare = head in self.bare_heads or name.startswith(self.outside)
        return name if bare else self.head_prefixes.get(head, self.prefix) + name

    def is_optional(self, name: str) -> bool:
        """Whether a plain stored name may be left over."""
        return any(fnmatchcase(name, pattern) for pattern in self.optional)

    def is_unused(self, name: str) -> bool:
        """Whether a plain stored name is one that no model reads."""
        return any(fnmatchcase(name, pattern) for pattern in self.unused)

    def table(self, head: str, parameters: Collection[str]) -> Table:
        """The names for a model with this head and these parameters."""
        return Table((*self.rules, *self.heads.get(head, ())), parameters)


class Table:
    """The rules of a family for one model."""

    def __init__(self, rules: tuple[Rule, ...], parameters: Collection[str]) -> None:
        self._parameters = parameters
        self._rules: dict[str, list[tuple[Rule, int]]] = {}
        for rule in sorted(rules, key=lambda rule: not rule.beside):
            for index, parameter in enumerate(rule.parameters):
                self._rules.setdefault(_FIELD.sub("#", parameter), []).append((rule, index))

    def find(self, parameter: str) -> Slot | None:
        """The stored tensor of a parameter, or None where the family has none for it."""
        for rule, index in self._rules.get(_NUMBER.sub("#", parameter), ()):
            fields = _FIELD.findall(rule.parameters[index])
            numbers = dict(zip(fields, _NUMBER.findall(parameter), strict=True))
            held = tuple(name.format(**numbers) for name in rule.parameters)
            needed = (*held, *([rule.beside.format(**numbers)] if rule.beside else ()))
            if all(name in self._parameters for name in needed):
                stored = tuple(name.format(**numbers) for name in (rule.stored, *rule.also))
                return Slot(stored, held, index, rule.transform)
        return None

    def names(self) -> Iterator[str]:
        """The preferred stored name of every parameter."""
        for parameter in self._parameters:
            slot = self.find(parameter)
            if slot is not None:
                yield slot.stored[0]


_FIELD = re.compile(r"\{(\w+)\}")
_NUMBER = re.compile(r"(?<=\.)(\d+)(?=\.)")


class _OwnTable(Table):
    def find(self, parameter: str) -> Slot:
        return Slot((parameter,), (parameter,))


class _OwnNames(Family):
    def table(self, head: str, parameters: Collection[str]) -> Table:
        return _OwnTable((), parameters)


OWN = _OwnNames("zoo", ("zoo",), ())
"""Checkpoints under the parameters' own names."""
