"""What a family's checkpoints look like: a table that reads in both directions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from specs.head import TransformingHead
from specs.model import Model
from zoo.checkpoints.transforms import SAME, STACKED, Shape, Transform, Transposed
from zoo.weights.modules import DENSE_PLACES, split_name

OfSpec = Callable[[Model], Transform]
"""What gives the transform for a spec, such as one that needs to know how many heads there are."""


@dataclass(frozen=True)
class Rule:
    """One stored tensor and the parameters it holds.

    In both names ``{layer}`` and the like stand for numbers.  Where ``stored`` has one that the parameters lack, such as
    ``{expert}``, there is a tensor for every row of theirs, and ``transform`` is that of a row.  ``copies`` are names
    under which checkpoints store the tensor again, and ``also`` names that they may have in its place: they count where
    ``stored`` is not there.  Where ``beside`` is set, the rule holds only for a model that has that parameter too, and
    goes before one without; where ``where`` is, only for specs of which it is true.
    """

    stored: str
    parameters: tuple[str, ...]
    transform: Transform | OfSpec = SAME
    copies: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    beside: str = ""
    where: Callable[[Model], bool] | None = None

    def transform_of(self, spec: Model) -> Transform:
        """The transform for a spec that the rule holds for."""
        return self.transform(spec) if callable(self.transform) else self.transform


def same(
    stored: str,
    parameter: str,
    *,
    copies: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
    beside: str = "",
) -> Rule:
    """A tensor stored as it is."""
    return Rule(stored, (parameter,), copies=copies, also=also, beside=beside)


def affine(stored: str, module: str) -> tuple[Rule, Rule]:
    """The weight and the bias of a module, stored as they are."""
    return same(f"{stored}.weight", f"{module}.weight"), same(f"{stored}.bias", f"{module}.bias")


def transposed(stored: str, module: str) -> tuple[Rule, Rule]:
    """The weight of a module, stored d_in x d_out as by GPT-2's Conv1D, and its bias."""
    return Rule(f"{stored}.weight", (f"{module}.weight",), Transposed()), same(
        f"{stored}.bias", f"{module}.bias"
    )


def fused(
    weight: str,
    bias: str,
    modules: tuple[str, ...],
    transform: Transform | OfSpec = STACKED,
    bias_transform: Transform | OfSpec = STACKED,
) -> tuple[Rule, Rule]:
    """The weights of several modules as one tensor (``transform`` is theirs), and their biases as another."""
    weights, biases = (tuple(f"{module}.{leaf}" for module in modules) for leaf in ("weight", "bias"))
    return Rule(weight, weights, transform), Rule(bias, biases, bias_transform)


def _dense(place: str, module: str, where: Callable[[Model], bool] | None = None) -> tuple[Rule, Rule]:
    """The weight and the bias of a module of the head, as a Dense module of sentence-transformers stores them."""
    weight, bias = (
        Rule(f"{place}.linear.{leaf}", (f"head.{module}.{leaf}",), where=where) for leaf in ("weight", "bias")
    )
    return weight, bias


def _has_dense(spec: Model) -> bool:
    return isinstance(spec.head, TransformingHead) and spec.head.activation is not None


_MODULES = {
    "pooled": (
        *_dense(DENSE_PLACES[0], "dense"),
        *_dense(DENSE_PLACES[0], "projection", lambda spec: not _has_dense(spec)),
        *_dense(DENSE_PLACES[1], "projection", _has_dense),
    )
}
"""Heads that the checkpoints of every family may have, by their kind in a spec: modules of sentence-transformers."""


@dataclass(frozen=True)
class Slot:
    """The stored tensor of a parameter: its possible names, the first that is there counting, and the ``index`` of
    the parameter among the ``parameters`` that it holds.  It is written under the first name and the ``copies`` after it.

    Where it is ``rows`` tensors, one for each row of the parameters, ``field`` stands in the names for the row.
    """

    stored: tuple[str, ...]
    parameters: tuple[str, ...]
    index: int = 0
    transform: Transform = SAME
    field: str = ""
    rows: int = 0
    copies: int = 0

    def names(self, stored: str) -> tuple[str, ...]:
        """The names of the tensors that one of the possible names stands for."""
        return (
            tuple(stored.replace(self.field, str(row)) for row in range(self.rows))
            if self.field
            else (stored,)
        )

    def part_shapes(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """The shapes of what one tensor holds, from those of the parameters."""
        return tuple(shape[1:] for shape in shapes) if self.field else tuple(shapes)


@dataclass(frozen=True)
class Family:
    """The checkpoints of a family.

    ``rules`` name the body, ``heads`` each head by its kind in a spec.  Names outside ``outside`` may carry ``prefix``,
    and do where there is a head beyond ``bare_heads``; ``head_prefixes`` are of heads that have another.  ``renamed``
    gives endings that old files write otherwise.
    ``places`` gives, for a spec whose layers are not stored by their numbers, other numbers for each layer, which stored names may have
    in place of ``{layer}``.  ``optional`` are tensors that a spec need not have a place for, such as other heads, and ``unused`` those that no model
    reads, such as buffers: patterns of whole names; ``unused_layers`` mark, by a tensor, layers that no model reads, such as those that
    guess further tokens.  ``remedies`` say what helps where a tensor is missing.
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
    places: Callable[[Model], Sequence[Mapping[str, int]]] | None = None
    optional: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    unused_layers: str = ""
    remedies: Mapping[str, str] = field(default_factory=dict)

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
        return bool(split_name(name)[0]) or any(fnmatchcase(name, pattern) for pattern in self.optional)

    def unread(self, names: Iterable[str]) -> list[str]:
        """Of some plain stored names those that no model reads."""
        names = list(names)
        marks = (name for name in names if self.unused_layers and fnmatchcase(name, self.unused_layers))
        layers = tuple(f"{name.rpartition('.')[0].rpartition('.')[0]}." for name in marks)
        return [
            name
            for name in names
            if (layers and name.startswith(layers))
            or any(fnmatchcase(name, pattern) for pattern in self.unused)
        ]

    def table(self, spec: Model, parameters: Mapping[str, Shape]) -> Table:
        """The names for the model of a spec, whose parameters have these shapes."""
        places = self.places(spec) if self.places else ()
        head = self.heads.get(spec.head.kind, _MODULES.get(spec.head.kind, ()))
        return Table((*self.rules, *head), spec, parameters, places)


class Table:
    """The rules of a family for one model."""

    def __init__(
        self,
        rules: tuple[Rule, ...],
        spec: Model,
        parameters: Mapping[str, Shape],
        places: Sequence[Mapping[str, int]] = (),
    ) -> None:
        self._spec, self._parameters, self._places = spec, parameters, places
        self._rules: dict[str, list[tuple[Rule, int]]] = {}
        holding = (rule for rule in rules if rule.where is None or rule.where(spec))
        for rule in sorted(holding, key=lambda rule: not rule.beside):
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
                if self._places and "layer" in numbers:
                    numbers |= {field: str(i) for field, i in self._places[int(numbers["layer"])].items()}
                row = next((field for field in _FIELD.findall(rule.stored) if field not in numbers), "")
                kept = {row: f"{{{row}}}"} if row else {}
                stored = tuple(
                    name.format(**numbers, **kept) for name in (rule.stored, *rule.copies, *rule.also)
                )
                rows = self._parameters[parameter][0] if row else 0
                transform = rule.transform_of(self._spec)
                return Slot(stored, held, index, transform, kept.get(row, ""), rows, len(rule.copies))
        return None

    def names(self) -> Iterator[tuple[str, ...]]:
        """Of every parameter that has a place, the stored names that it may have."""
        for slot in filter(None, map(self.find, self._parameters)):
            yield tuple(name for stored in slot.stored for name in slot.names(stored))


_FIELD = re.compile(r"\{(\w+)\}")
_NUMBER = re.compile(r"(?<=\.)(\d+)(?=\.)")


class _OwnTable(Table):
    def find(self, parameter: str) -> Slot:
        return Slot((parameter,), (parameter,))


class _OwnNames(Family):
    def table(self, spec: Model, parameters: Mapping[str, Shape]) -> Table:
        return _OwnTable((), spec, parameters)


OWN = _OwnNames("zoo", ("zoo",), ())
"""Checkpoints under the parameters' own names."""
