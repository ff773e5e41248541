"""The tensors of a family's checkpoints: a table of names that is read in both directions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from specs.kinds.transforming_head import TransformingHead
from specs.model.model import Model
from zoo.families.common.transforms import SAME, STACKED, Pointwise, Shape, Transform, Transposed
from zoo.weights.modules import DENSE_PLACES, ROUTE_PLACES, split_name

if TYPE_CHECKING:
    from torch import Tensor

OfSpec = Callable[[Model], Transform]
"""A function that returns the transform for a spec, such as one that depends on the number of heads."""


@dataclass(frozen=True)
class Rule:
    """One stored tensor and the parameters it holds.

    In both names, fields such as ``{layer}`` stand for numbers; a name of a parameter without fields is meant as it is. Where ``stored`` has a field that the parameters lack,
    such as ``{expert}``, each row of the parameters is a tensor of its own, and ``transform`` applies to a row. ``copies``
    are names under which checkpoints store the tensor again; ``also`` are alternative names, used where ``stored`` is
    absent. With ``beside``, the rule holds only for models that have that parameter too, and precedes rules without;
    with ``where``, only for specs for which it is true. ``across`` is a field of the parameters that the stored name lacks:
    the tensor holds those of all its numbers, in order. ``sections`` returns, for a spec, the words that stand for a field of
    ``stored`` that is no number, each with its rows of the one parameter: the tensors follow each other.
    """

    stored: str
    parameters: tuple[str, ...]
    transform: Transform | OfSpec = SAME
    copies: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    beside: str = ""
    where: Callable[[Model], bool] | None = None
    across: str = ""
    sections: Callable[[Model], Mapping[str, int]] | None = None

    def transform_of(self, spec: Model) -> Transform:
        """The transform for a spec that the rule holds for."""
        return self.transform(spec) if callable(self.transform) else self.transform


def same(
    stored: str, parameter: str, *, copies: tuple[str, ...] = (), also: tuple[str, ...] = (), beside: str = ""
) -> Rule:
    """Return the rule of a tensor that is stored unchanged."""
    return Rule(stored, (parameter,), copies=copies, also=also, beside=beside)


def affine(stored: str, module: str) -> tuple[Rule, Rule]:
    """Return the rules of a module's weight and bias, which are stored unchanged."""
    return same(f"{stored}.weight", f"{module}.weight"), same(f"{stored}.bias", f"{module}.bias")


def modules(pairs: Mapping[str, str], stored: str = "", ours: str = "") -> tuple[Rule, ...]:
    """Return the rules of several modules, stored name -> ours; ``stored`` and ``ours`` are prefixes of the names."""
    return tuple(rule for theirs, own in pairs.items() for rule in affine(stored + theirs, ours + own))


def weights(pairs: Mapping[str, str], stored: str = "", ours: str = "") -> tuple[Rule, ...]:
    """Return the rules of several modules without biases."""
    return tuple(same(f"{stored}{theirs}.weight", f"{ours}{own}.weight") for theirs, own in pairs.items())


def projections(
    stored: str, names: str = "q_proj k_proj v_proj out_proj", ours: str = "attention"
) -> dict[str, str]:
    """Return the projections of an attention by the stored names of query, key, value and output, as far as given."""
    own = ("query", "key", "value", "output")
    return {f"{stored}{name}": f"{ours}.{role}" for name, role in zip(names.split(), own, strict=False)}


def transposed(stored: str, module: str) -> tuple[Rule, Rule]:
    """Return the rules of a module whose weight is stored d_in x d_out, as by GPT-2's Conv1D."""
    return Rule(f"{stored}.weight", (f"{module}.weight",), Transposed()), same(
        f"{stored}.bias", f"{module}.bias"
    )


def pointwise(stored: str, module: str) -> tuple[Rule, Rule]:
    """Return the rules of a module whose weight is stored as a convolution with a kernel of 1."""
    return Rule(f"{stored}.weight", (f"{module}.weight",), Pointwise()), same(
        f"{stored}.bias", f"{module}.bias"
    )


def fused(
    stored: str,
    modules: tuple[str, ...],
    transform: Transform | OfSpec = STACKED,
    bias_transform: Transform | OfSpec = STACKED,
) -> tuple[Rule, Rule]:
    """Return the rules of several modules with fused weights (by ``transform``) and fused biases."""
    weights, biases = (tuple(f"{module}.{leaf}" for module in modules) for leaf in ("weight", "bias"))
    return Rule(f"{stored}.weight", weights, transform), Rule(f"{stored}.bias", biases, bias_transform)


def _dense(directory: str, module: str, where: Callable[[Model], bool] | None = None) -> tuple[Rule, Rule]:
    """Return the rules of a head's module that sentence-transformers stores as a Dense module, and Stanford's ColBERT
    beside the body."""
    weight, bias = (
        Rule(
            f"{directory}.linear.{leaf}",
            (f"head.{module}.{leaf}",),
            also=() if "." in module else (f"linear.{leaf}",),
            where=where,
        )
        for leaf in ("weight", "bias")
    )
    return weight, bias


def _has_dense(spec: Model, part: str = "") -> bool:
    head = spec.head.parts.get(part or spec.head.kind)
    return isinstance(head, TransformingHead) and head.activation is not None


def _dense_at(places: Sequence[str], part: str = "") -> tuple[Rule, ...]:
    """Return the rules of a head's Dense modules, by the directories of the first and the second; ``part`` is the name of one of
    several heads."""
    module = f"heads.{part}." if part else ""
    return (
        *_dense(places[0], f"{module}dense", lambda spec: _has_dense(spec, part)),
        *_dense(places[0], f"{module}projection", lambda spec: not _has_dense(spec, part)),
        *_dense(places[1], f"{module}projection", lambda spec: _has_dense(spec, part)),
    )


GLINER_BODY = "token_rep_layer.bert_layer.model."
"""The prefix of the encoder's tensors in GLiNER's checkpoints."""

_LSTM, _OWN_LSTM = "rnn.lstm.", "head.recurrent.layers.{depth}."


def _lstm_rules() -> Iterator[Rule]:
    """Return the rules of LSTM layers, whose gates are stored in PyTorch's order."""
    gates = ("input", "forget", "cell", "output")
    for direction, ending in (("forward_gates", ""), ("backward_gates", "_reverse")):
        for side, mark in (("read", "ih"), ("kept", "hh")):
            for leaf in ("weight", "bias"):
                own = tuple(f"{_OWN_LSTM}{direction}.{side}.{gate}.{leaf}" for gate in gates)
                yield Rule(f"{_LSTM}{leaf}_{mark}_l{{depth}}{ending}", own, STACKED)


_GLINER = {
    "token_rep_layer.projection": "projection",
    **{
        f"span_rep_layer.span_rep_layer.{theirs}.{index}": f"spans.{ours}.{own}"
        for theirs, ours in (("project_start", "first"), ("project_end", "last"), ("out_project", "output"))
        for index, own in ((0, "up"), (3, "down"))
    },
    "prompt_rep_layer.0": "labels.up",
    "prompt_rep_layer.3": "labels.down",
}
"""The layers of GLiNER's head, by their stored names."""

_OF_GLINER = ("token_rep_layer.projection.", "rnn.", "span_rep_layer.", "prompt_rep_layer.")
"""The beginnings of the names of its tensors."""

_MODULES = {
    "spans": (*modules(_GLINER, ours="head."), *_lstm_rules()),
    "pooled": _dense_at(DENSE_PLACES[1:]),
    "multi_vector": _dense_at(DENSE_PLACES),
    "several": (
        *modules(
            {"colbert_linear": "multi_vector.projection", "sparse_linear": "sparse.score"}, ours="head.heads."
        ),
        *(rule for route, places in ROUTE_PLACES.items() for rule in _dense_at(places, route)),
    ),
}
"""Heads of GLiNER and of sentence-transformers modules, which checkpoints of every family may have, by their kind in a spec."""


@dataclass(frozen=True)
class StoredParameter:
    """The stored tensor of a parameter: its possible names, of which the first one present counts, and the ``index`` of
    the parameter among the ``parameters`` that it holds. It is written under the first name and the ``copies`` after it.

    Where it consists of ``rows`` tensors, one per row of the parameters, ``field`` in the names stands for the row; where it
    consists of ``sections``, by the words that ``field`` stands for, each holds so many rows.
    """

    stored: tuple[str, ...]
    parameters: tuple[str, ...]
    index: int = 0
    transform: Transform = SAME
    field: str = ""
    rows: int = 0
    copies: int = 0
    sections: tuple[tuple[str, int], ...] = ()

    def names(self, stored: str) -> tuple[str, ...]:
        """Return the names of the tensors behind one of the possible names."""
        values = [word for word, _ in self.sections] or range(self.rows)
        return tuple(stored.replace(self.field, str(value)) for value in values) if self.field else (stored,)

    def part_shapes(self, shapes: Sequence[Shape], row: int = 0) -> tuple[Shape, ...]:
        """Return the shapes of the parts that one tensor holds, from the shapes of the parameters."""
        if self.sections:
            return tuple((self.sections[row][1], *shape[1:]) for shape in shapes)
        return tuple(shape[1:] for shape in shapes) if self.field else tuple(shapes)

    def parts(self, held: Sequence[Tensor], row: int) -> Sequence[Tensor]:
        """Return the parts that one of the tensors holds, from the values of the parameters."""
        if self.sections:
            return [part.split([rows for _, rows in self.sections])[row] for part in held]
        return [part[row] for part in held] if self.field else held


@dataclass(frozen=True)
class Tensors:
    """The names of tensors in the checkpoints of one or more families; ``name`` is their name in messages.

    ``rules`` name the body, ``heads`` each head by its kind in a spec. Names outside ``outside`` may carry ``prefix``,
    and do so with any head except ``bare_heads``; ``head_prefixes`` are the prefixes of heads that have another one.
    ``renamed`` maps endings in old files to present ones. ``places`` returns, for a spec whose layers are not stored by
    index, the numbers of each layer that stored names have instead of ``{layer}``. ``optional`` and ``unused`` are patterns
    of whole names: tensors that a spec need not use, such as other heads, and tensors that no model reads, such as
    buffers. ``unused_layers`` identify, by a tensor, layers that no model reads, such as those that predict further tokens.
    ``remedies`` are hints for missing tensors. ``other`` is the table of checkpoints with another layout, by earlier releases or of
    the model in memory, which is read where all of its tensors are there. ``next_token`` is the table of the module that predicts a
    further token, which the checkpoints hold beside the model. ``first_layer`` identifies, by a tensor, the first layer that a table
    names; layers before it are another model's. ``text`` is the table of the decoder alone, of a model that also reads images.
    """

    name: str
    rules: tuple[Rule, ...]
    heads: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)
    prefix: str = ""
    head_prefixes: Mapping[str, str] = field(default_factory=dict)
    outside: tuple[str, ...] = ()
    bare_heads: tuple[str, ...] = ("none", "pooler", "pooled", "multi_vector", "several")
    renamed: Mapping[str, str] = field(default_factory=dict)
    places: Callable[[Model], Sequence[Mapping[str, int]]] | None = None
    optional: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    unused_layers: str = ""
    remedies: Mapping[str, str] = field(default_factory=dict)
    other: Tensors | None = None
    next_token: Tensors | None = None
    first_layer: str = ""
    text: Tensors | None = None

    def of(self, spec: Model) -> Tensors:
        """Return the table for a spec: of the model, of its decoder alone, or of the module beside it, which reads hidden states."""
        if spec.reads_hidden_states:
            return self.next_token or self
        return self.text if self.text is not None and spec.architecture == "decoder" else self

    def plain(self, name: str) -> str:
        """Return a stored name without prefix and with present endings."""
        for prefix in (GLINER_BODY, self.prefix, *self.head_prefixes.values()):
            name = name.removeprefix(prefix)
        for old, new in self.renamed.items():
            if name.endswith(old):
                return name.removesuffix(old) + new
        return name

    def full(self, name: str, head: str) -> str:
        """Return the full form of a plain name in the checkpoints of models with this head."""
        if head == "spans":
            return name if name.startswith(_OF_GLINER) else GLINER_BODY + name
        bare = head in self.bare_heads or name.startswith(self.outside)
        return name if bare else self.head_prefixes.get(head, self.prefix) + name

    def is_optional(self, name: str) -> bool:
        """Return whether the tensor of a plain stored name may remain unused."""
        return bool(split_name(name)[0]) or any(fnmatchcase(name, pattern) for pattern in self.optional)

    def unread(self, names: Iterable[str]) -> list[str]:
        """Return those plain stored names that no model reads."""
        names = list(names)
        layers = layers_with(self.unused_layers, names)
        return [
            name
            for name in names
            if (layers and name.startswith(layers))
            or any(fnmatchcase(name, pattern) for pattern in self.unused)
        ]

    def table(self, spec: Model, parameters: Mapping[str, Shape]) -> TensorRules:
        """The names for the model of a spec, whose parameters have these shapes."""
        places = self.places(spec) if self.places else ()
        kind = spec.head.stored_kind
        head = self.heads.get(kind, _MODULES.get(kind, ()))
        rules = _of_encoder(self.rules) if spec.architecture == "encoder" else self.rules
        return TensorRules((*rules, *head), spec, parameters, places)


def layers_with(mark: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the beginnings of the names of layers that have a tensor of this pattern, such as ``layers.61.``; none without a pattern."""
    marks = (name for name in names if mark and fnmatchcase(name, mark))
    return tuple(f"{name.rpartition('.')[0].rpartition('.')[0]}." for name in marks)


def _of_encoder(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Return the rules for an encoder: a causal one has the layers of a family's decoder, where it has no encoder."""

    def renamed(parameter: str) -> str:
        return re.sub("^decoder[.]", "encoder.", parameter)

    if any(name.startswith("encoder.") for rule in rules for name in rule.parameters):
        return rules
    return tuple(
        replace(rule, parameters=tuple(map(renamed, rule.parameters)), beside=renamed(rule.beside))
        for rule in rules
    )


class TensorRules:
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
        self._held: dict[str, tuple[str, ...]] = {}
        holding = (rule for rule in rules if rule.where is None or rule.where(spec))
        for rule in sorted(holding, key=lambda rule: not rule.beside):
            for index, parameter in enumerate(rule.parameters):
                self._rules.setdefault(_FIELD.sub("#", parameter), []).append((rule, index))

    def find(self, parameter: str) -> StoredParameter | None:
        """Return the stored tensor of a parameter, or None where the family has none."""
        rules = self._rules.get(parameter) or self._rules.get(_NUMBER.sub("#", parameter), [])
        for rule, index in rules:
            fields = _FIELD.findall(rule.parameters[index])
            numbers = dict(zip(fields, _NUMBER.findall(parameter), strict=bool(fields)))
            held = tuple(name.format(**numbers) for name in rule.parameters)
            if rule.across:
                held = self._across(rule)
                index = held.index(parameter)
            needed = (*held, *([rule.beside.format(**numbers)] if rule.beside else ()))
            if all(name in self._parameters for name in needed):
                if self._places and "layer" in numbers:
                    numbers |= {field: str(i) for field, i in self._places[int(numbers["layer"])].items()}
                unknown = dict.fromkeys(name for name in _FIELD.findall(rule.stored) if name not in numbers)
                if len(unknown) > 1:
                    continue  # names of layers that the spec does not have
                row = next(iter(unknown), "")
                kept = {row: f"{{{row}}}"} if row else {}
                stored = tuple(
                    name.format(**numbers, **kept) for name in (rule.stored, *rule.copies, *rule.also)
                )
                rows = self._parameters[parameter][0] if row else 0
                transform = rule.transform_of(self._spec)
                sections = tuple(rule.sections(self._spec).items()) if rule.sections else ()
                return StoredParameter(
                    stored, held, index, transform, kept.get(row, ""), rows, len(rule.copies), sections
                )
        return None

    def _across(self, rule: Rule) -> tuple[str, ...]:
        """Return the parameters that a rule's tensor holds, layer by layer."""
        (pattern,) = rule.parameters
        if pattern not in self._held:
            parts = pattern.split(f"{{{rule.across}}}")
            expression = re.compile(r"(\d+)".join(map(re.escape, parts)))
            numbers = {int(hit[1]) for name in self._parameters if (hit := expression.fullmatch(name))}
            self._held[pattern] = tuple(pattern.format(**{rule.across: number}) for number in sorted(numbers))
        return self._held[pattern]

    def names(self) -> Iterator[tuple[str, ...]]:
        """Return the possible stored names of every parameter that has any."""
        for slot in filter(None, map(self.find, self._parameters)):
            yield tuple(name for stored in slot.stored for name in slot.names(stored))


_FIELD = re.compile(r"\{(\w+)\}")
_NUMBER = re.compile(r"(?<=\.)(\d+)(?=\.)")
