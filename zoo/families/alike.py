"""The family that a config of an unknown type is like: in its fields, and in the names of its tensors where there are any."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from specs.base.errors import option_name
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError
from zoo.families.common.family import Family
from zoo.families.common.neutral_fields import NEUTRAL
from zoo.families.common.reference_fields import reference_fields
from zoo.families.common.tensors import Tensors

_FEWEST, _SHARE, _SEVERAL = 6, 4, 4
"""Fields that a family must read at least, how many it reads for each that it does not, and how many families are named."""

_READ = 20
"""Families whose fields are read to compare them; the others lack more of the fields."""

_SUFFIX = re.compile(r"(?:For[A-Z]\w*|LMHeadModel|MTModel|EncoderModel|Model)$")
_FIELD, _NUMBER = re.compile(r"\{\w+\}"), re.compile(r"(?<=\.)\d+(?=\.)")

TEXT = re.compile(r"^(?:.*\.)?language_model\.(?=.)")
"""Prefixes of the names of a text model's tensors in a model of several inputs."""


_TIED = "tie_word_embeddings"


@dataclass(frozen=True)
class Likeness:
    """A family that reads a config, and how many fields it reads and does not read."""

    family: Family
    unread: int
    read: int

    @property
    def rank(self) -> tuple[int, int]:
        """The smaller, the more alike."""
        return self.unread, -self.read


def offer(config: Config, families: Iterable[Family]) -> str:
    """Return the way to read a config of an unknown type: as the family that reads most of its fields and names all of its
    tensors.  Empty without one.

    Fields alone do not tell families apart that differ in their layers: without tensors, families that read the same are all
    named, and none where they are many.
    """
    inner = text_config(config)
    subject = config if inner is None else inner
    likenesses = [
        likeness for family in _nearest(subject, families) if (likeness := _likeness(subject, family))
    ]
    whose = "Its fields" if inner is None else "The fields of its text model"
    named_type = subject.data.get("model_type")
    own = [likeness for likeness in likenesses if likeness.family.model_type == named_type]
    best = own or [
        likeness
        for likeness in likenesses
        if likeness.rank == min(likenesses, key=lambda likeness: likeness.rank).rank
    ]
    names = [likeness.family.model_type for likeness in best]
    option = option_name("family")
    if stored := len(subject.tensor_names()):
        if not names:
            return ""
        read = f"Pass {option} {names[0]} to export, build or import it as that family; every tensor must then fit."
        return f"{whose} and the names of its {stored:,} tensors are those of {names[0]}. {read}"
    if len(names) == 1:
        return f"{whose} are those of {names[0]}. Pass {option} {names[0]} to export, build or import it as that family."
    if 1 < len(names) <= _SEVERAL:
        listed = f"{', '.join(names[:-1])} or {names[-1]}"
        return f"{whose} are those of {listed}. Pass {option} with one of them, or the config beside its tensors, which tell."
    return ""


def text_config(config: Config) -> Config | None:
    """Return the config of the text model of a model of several inputs, with the outer fields that concern it.

    The outer config says whether its embeddings are tied, and where it does not, the tensors beside it.
    """
    inner = config.data.get("text_config")
    if not isinstance(inner, dict):
        return None
    names = tuple(text_names(config.tensor_names()))
    outer = {name: config.data[name] for name in (_TIED, "quantization_config") if name in config.data}
    if _TIED not in outer and names:
        outer[_TIED] = "lm_head.weight" not in names
    return Config({**inner, **outer}, config.where, tensors=lambda: names)


def text_names(stored: Iterable[str]) -> Mapping[str, str]:
    """Return the names of a text model's tensors without what precedes them, and the names in the files.

    They are those inside ``language_model``, or beside the other inputs' modules those of ``model``, and those of the head.
    """
    names = list(stored)
    inside = {TEXT.sub("", name): name for name in names if TEXT.match(name)}
    inside = inside or {name: name for name in names if name.startswith("model.")}
    heads = {name: name for name in names if name.startswith(("lm_head.", "score."))}
    return {**inside, **heads} if inside else {}


def class_like(named: Any, family: Family) -> str:
    """Return the class of a family that has the ending of the first class that a config names, or the family's default."""
    first = named[0] if isinstance(named, list) and named and isinstance(named[0], str) else ""
    if first in family.classes:
        return first
    ending = _SUFFIX.search(first)
    alike = (name for name in family.classes if ending and name.endswith(ending[0]))
    return next(alike, next(iter(family.classes)))


def as_family(config: Config, family: Family) -> Config:
    """Return a config with a family's type, and its class of the same head."""
    inner = text_config(config) if config.data.get("model_type") != family.model_type else None
    subject = config if inner is None else inner
    class_name = class_like(subject.data.get("architectures"), family)
    data = {**subject.data, "model_type": family.model_type, "architectures": [class_name]}
    return Config(data, config.where, tensors=subject.tensor_names)


def _nearest(config: Config, families: Iterable[Family]) -> list[Family]:
    """Return the few families whose references have most of a config's fields, in the order of preference."""
    fields = reference_fields()
    names = {
        name for name, value in config.data.items() if value is not None and name not in NEUTRAL
    } - fields[""]
    if str(config.data.get("model_type")) in fields:
        return [family for family in families if family.model_type == config.data["model_type"]]
    members = list(families)
    lacking = {
        family.model_type: len(names - fields.get(family.model_type, frozenset()) - {*family.ignored})
        for family in members
    }
    near = sorted(members, key=lambda family: lacking[family.model_type])[:_READ]
    return [family for family in near if lacking[family.model_type] * _SHARE <= len(names)]


def _likeness(config: Config, family: Family) -> Likeness | None:
    trial = as_family(config, family)
    stored = trial.tensor_names()
    if stored and not _named(stored, family.tensors):
        return None
    try:
        family.spec(trial, trial.data["architectures"][0])
        unread = trial.finish()
    except (
        ConfigError,
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
    ):  # of a config that is not the family's
        return None
    names = {name for name, value in trial.data.items() if value is not None and name not in NEUTRAL}
    read = len(names - {*family.ignored}) - len(unread)
    if read < _FEWEST or len(unread) * _SHARE > read:
        return None
    return Likeness(family, len(unread), read)


def _named(stored: Collection[str], table: Tensors) -> bool:
    """Return whether a table names all tensors of a checkpoint, by their names without numbers."""
    rules = (*table.rules, *(rule for head in table.heads.values() for rule in head))
    known = {_FIELD.sub("#", name) for rule in rules for name in (rule.stored, *rule.copies, *rule.also)}
    plain = [table.plain(name) for name in stored]
    unread = set(table.unread(plain))
    return all(name in unread or _kept(name, known, table) for name in plain)


def _kept(name: str, known: Collection[str], table: Tensors) -> bool:
    return _NUMBER.sub("#", name) in known or any(fnmatchcase(name, pattern) for pattern in table.optional)


def candidates(families: Iterable[Family]) -> Iterator[Family]:
    """Yield the families whose configs describe one model, not several inside it."""
    return (family for family in families if isinstance(family.body, dict) and family.classes)
