"""Which ``--set`` assignments turn one spec into another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from specs.base import Spec
from specs.canonical import complete
from specs.document import Document
from specs.errors import MISSING, SpecError, SpecPath
from specs.load import varied, with_named_blocks
from specs.model import Model
from specs.registry import keys_of_kind
from specs.resolved import resolved
from specs.validation import validate
from specs.writing import flow

_ABOUT = ("name", "summary", "source", "year", "expect")


def assignments(document: Document, goal: Document) -> list[str] | None:
    """The fewest found ``path=value`` that turn the spec of one document into that of another, in order.

    Documents are as :func:`specs.load.read` gives them.  None where no assignments do: they can neither remove a named
    block nor write a key that is not plain.
    """
    wanted = validate(with_named_blocks(goal))
    target = complete(wanted)
    for aim in (goal.data, resolved(wanted)):
        found = list(_towards(document.data, aim, _full(wanted), ()))
        if _reached(document, found, target):
            return _needed(document, found, target)
    return None


def _towards(data: Any, aim: Any, full: Any, path: SpecPath) -> Iterator[str]:
    """Assignments that make plain data say what an aim says; ``full`` is the aim with its defaults."""
    old, new = data.get("kind"), aim.get("kind", full.get("kind") if "kind" in data else None)
    if new != old and new is not None:
        yield _assignment((*path, "kind"), new)
        data = {key: value for key, value in data.items() if key in (keys_of_kind(new) or data)}
    for key, value in aim.items():
        here, below = (*path, key), data.get(key, MISSING)
        if key == "kind" or here[0] in _ABOUT:
            continue
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            yield from _towards(below, value, _under(full, key), here)
        elif below != value or type(below) is not type(value):
            yield _assignment(here, value)
    for key, below in data.items():
        here, value = (*path, key), full.get(key, MISSING)
        if key in aim or key == "kind" or here[0] in _ABOUT or value in (MISSING, below):
            continue
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            yield from _towards(below, value, value, here)
        else:
            yield _assignment(here, value)


def _full(value: Any) -> Any:
    """A spec as plain data in which every part has its kind and its defaults."""
    if isinstance(value, Spec):
        dumped: Any = value.model_dump(mode="json")
        if not isinstance(dumped, Mapping):
            return dumped
        return {key: _full(getattr(value, key)) for key in type(value).model_fields}
    if isinstance(value, Mapping):
        return {key: _full(item) for key, item in value.items()}
    return [_full(item) for item in value] if isinstance(value, tuple) else value


def _under(full: Any, key: str) -> Any:
    below = full.get(key)
    return below if isinstance(below, Mapping) else {}


def _assignment(path: Sequence[Any], value: Any) -> str:
    return f"{'.'.join(map(str, path))}={flow(value)}"


def _needed(document: Document, found: list[str], target: Mapping[str, Any]) -> list[str]:
    """The assignments without those that change nothing, the last first."""
    for assignment in reversed(found):
        fewer = [other for other in found if other != assignment]
        if _reached(document, fewer, target):
            found = fewer
    return found


def _reached(document: Document, found: Sequence[str], target: Mapping[str, Any]) -> bool:
    try:
        return complete(validate(with_named_blocks(varied(document, found)))) == target
    except SpecError:
        return False


def described(model: Model) -> Document:
    """The document of a model that was not read from one."""
    return Document(resolved(model))
