"""Distances between architectures, and the earlier architecture from which each differs least.

Only structure counts: which parts a model has, and of which kinds. Numbers, such as widths and layers, do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from specs.forms.likeness import is_number, settings, weight_of
from specs.model.model import Model

_NUMBER = "\x00"
"""The value of a setting that is a number."""
UNRELATED = 0.45
"""The share of two structures that differ from which on neither descends from the other."""
ALIKE = 4
"""The distance up to which models of one family are one node of a tree."""


@dataclass(frozen=True)
class Structure:
    """The parts of a model and their kinds, as ``path: value`` without numbers; equal layers count once."""

    items: frozenset[tuple[str, Any]]

    @classmethod
    def of(cls, spec: Model) -> Structure:
        """The structure of a spec."""
        return cls(
            frozenset((path, _NUMBER if is_number(value) else value) for path, value, _ in settings(spec))
        )

    @cached_property
    def weight(self) -> int:
        """The sum of the weights of its items."""
        return sum(weight_of(path) for path, _ in self.items)

    def distance(self, other: Structure) -> int:
        """The weight of the items that only one of both has; a kind weighs three times another setting."""
        return sum(weight_of(path) for path, _ in self.items ^ other.items)

    def changes(self, other: Structure) -> list[str]:
        """The kinds and settings of another structure that this one does not have, as text; kinds first.

        A part of a new kind is named by its kind alone.
        """
        news = sorted(other.items - self.items, key=_rank)
        parts = {path.removesuffix("kind") for path, _ in news if path.endswith(".kind")}
        texts = [
            _text(path, value)
            for path, value in news
            if path.endswith("kind") or not any(path.startswith(part) for part in parts)
        ]
        return list(dict.fromkeys(texts))


def _rank(item: tuple[str, Any]) -> tuple[bool, bool, str]:
    path, value = item
    return not path.endswith("kind"), value == _NUMBER, path


def _text(path: str, value: Any) -> str:
    if value == _NUMBER:
        return path
    return f"{path.removesuffix('.kind')}: {str(value).lower() if isinstance(value, bool) else value}"


@dataclass(frozen=True)
class Node:
    """Models of one family and of nearly one structure, the first of which stands for them; ``parent``: the name of the node
    that it differs least from among earlier ones, if any is related."""

    name: str
    members: tuple[str, ...]
    year: int
    parent: str | None
    changes: tuple[str, ...]


def family_tree(models: Sequence[tuple[str, int, Structure]]) -> list[Node]:
    """The nodes of a tree of models with their years, each after its parent."""
    ordered = sorted(models, key=lambda model: (model[1], len(model[0]), model[0]))
    heads: list[tuple[str, int, Structure]] = []
    members: dict[str, list[str]] = {}
    parents: dict[str, str | None] = {}
    for name, year, structure in ordered:
        near = min(
            heads,
            key=lambda head: (structure.distance(head[2]), family(head[0]) != family(name), head[1]),
            default=None,
        )
        distance = structure.distance(near[2]) if near else 0
        if near and distance <= ALIKE and family(near[0]) == family(name):
            members[near[0]].append(name)
            continue
        related = near is not None and distance < UNRELATED * (structure.weight + near[2].weight)
        parents[name] = near[0] if near is not None and related else None
        members[name] = [name]
        heads.append((name, year, structure))
    structures = {name: structure for name, _, structure in heads}
    return [
        Node(
            name,
            tuple(members[name]),
            year,
            parent := parents[name],
            tuple(structures[parent].changes(structures[name])) if parent else (),
        )
        for name, year, _ in heads
    ]


def family(name: str) -> str:
    """The family in a model's name: its letters before the first digit or dash."""
    letters = ""
    for letter in name:
        if not letter.isalpha():
            break
        letters += letter
    return letters
