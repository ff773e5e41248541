"""Remedies for unknown keys."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, get_args, get_origin

from specs.base import registry
from specs.base.base import Slot, Spec
from specs.base.errors import SpecPath, path_text
from specs.base.suggest import nearest, suggestion
from specs.language.synonyms import SYNONYMS

_NAMED = 3
"""Maximum number of paths or kinds in a remedy."""


def remedy_for(
    path: SpecPath, known: Collection[str], slot: str | None, root: type[Spec], data: Mapping[str, Any]
) -> str:
    """The remedy for the unknown key at the end of a path in the data of a spec of class ``root``.

    ``known``: the valid keys of its mapping, which is a kind of ``slot`` if that is not None. In order of preference: the
    same key deeper in that mapping, a synonym in that mapping, another kind that has the key, a near spelling in that
    mapping, the key or its synonym anywhere in the spec, and the list of valid keys.
    """
    word = str(path[-1])
    first = word.split()[0] if word.split() else word
    if first != word and first in known:
        return f"Write the key and its value as {first}: VALUE."
    parent = path[:-1]
    meant = SYNONYMS.get(word.casefold().replace("-", "_"), word)
    same = list(_places(root, data, word, ()))
    if deeper := [known_path for known_path in same if known_path[: len(parent)] == parent]:
        return _named(deeper)
    if meant not in known and (others := registry.kinds_with(slot, meant)):
        return f"Use kind: {_either(others)}, or remove {word}."
    if near := meant if meant in known else nearest(word, known):
        return _named([(near,)])
    elsewhere = same or list(_places(root, data, meant, ()))
    within = [known_path for known_path in elsewhere if known_path[: len(parent)] == parent]
    return _named(within or elsewhere) if elsewhere else suggestion(word, known)


def _named(places: Sequence[SpecPath]) -> str:
    return f"Did you mean {_either([repr(path_text(known_path)) for known_path in places])}?"


def _either(names: Sequence[str]) -> str:
    *others, last = [*names[:_NAMED], "others"] if len(names) > _NAMED else names
    return " or ".join(filter(None, [", ".join(others), last]))


def _places(spec: type[Spec], data: Mapping[str, Any], key: str, path: SpecPath) -> Iterator[SpecPath]:
    """The paths at which existing parts of a spec take a key, nearest to the root first in each part."""
    if key in spec.model_fields:
        yield (*path, key)
    for name, field in spec.model_fields.items():
        value = data.get(name)
        if isinstance(value, Mapping):
            part = _class_of([field.annotation, *field.metadata], value)
            if part is not None:
                yield from _places(part, value, key, (*path, name))


def _class_of(annotations: Sequence[Any], value: Mapping[str, Any]) -> type[Spec] | None:
    """The class of a mapping by its field's annotation; None for named blocks and unknown kinds."""
    for part in sorted(annotations, key=lambda part: not isinstance(part, Slot)):
        if isinstance(part, Slot):
            kind = value.get("kind", registry.default_kind(part.name))
            known = registry.kinds(part.name).get(kind) if isinstance(kind, str) else None
            return known.spec if known else None
        if isinstance(part, type) and issubclass(part, Spec):
            return part
        if part is not dict and get_origin(part) is not dict and get_args(part):
            candidate = _class_of(get_args(part), value)
            if candidate is not None:
                return candidate
    return None
