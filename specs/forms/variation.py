"""Assignments (``--set``) that turn one spec into another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import accumulate
from typing import Any

from specs.base.errors import MISSING, SpecError, SpecPath
from specs.base.registry import held_by_new_kind
from specs.forms.canonical import complete
from specs.forms.full import full
from specs.forms.resolved import resolved
from specs.language.assignment import parse_assignment
from specs.language.document import Document
from specs.language.merging import merge
from specs.language.named_blocks import with_named_blocks, without_abandoned_blocks
from specs.language.validation import validate
from specs.language.variant import unclaimed
from specs.language.writing import flow

Step = tuple[str, bool]
"""An assignment, and whether it is needed; if not, it may state a default."""

_ABOUT = ("name", "summary", "source", "year", "expect")


def assignments(document: Document, goal: Document) -> list[str] | None:
    """A small list of ``path=value`` assignments that turns one document's spec into another's, in order.

    Documents come from :func:`specs.language.load.read`. None if no assignments can: they can neither remove a named block nor
    write a key that is not plain.
    """
    wanted = validate(with_named_blocks(goal))
    target = complete(wanted)
    for aim in (goal.data, resolved(wanted)):
        steps = list(_towards(document.data, aim, full(wanted), ()))
        needed = _needed(document, steps, target)
        if needed is not None:
            return needed
    return None


def _towards(data: Any, aim: Any, full: Any, path: SpecPath) -> Iterator[Step]:
    """Assignments that turn plain data into ``aim``; ``full`` is the aim with its defaults."""
    old, new = data.get("kind"), aim.get("kind", full.get("kind") if "kind" in data else None)
    if new != old and new is not None:
        yield _assignment((*path, "kind"), new), old is not None
        data = held_by_new_kind(data, new)
    for key, value in aim.items():
        key_path, below = (*path, key), data.get(key, MISSING)
        if key == "kind" or key_path[0] in _ABOUT:
            continue
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            yield from _towards(below, value, _under(full, key), key_path)
        elif below != value or type(below) is not type(value):
            yield _assignment(key_path, value), below is not MISSING
    for key, below in data.items():
        key_path, value = (*path, key), full.get(key, MISSING)
        if key in aim or key == "kind" or key_path[0] in _ABOUT or value in (MISSING, below):
            continue
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            yield from _towards(below, value, value, key_path)
        else:
            yield _assignment(key_path, value), False


def _under(full: Any, key: str) -> Any:
    below = full.get(key)
    return below if isinstance(below, Mapping) else {}


def _assignment(path: Sequence[Any], value: Any) -> str:
    return f"{'.'.join(map(str, path))}={flow(value)}"


def _needed(document: Document, steps: Sequence[Step], target: Mapping[str, Any]) -> list[str] | None:
    """The assignments without redundant ones, testing the last first; None if all of them together do not reach the target."""
    try:
        overrides = [parse_assignment(assignment) for assignment, _ in steps]
        before = [*accumulate(overrides, _merged, initial=unclaimed(document))]
    except SpecError:
        return None

    def reached(first: int, others: Sequence[int]) -> bool:
        """Whether the ``first`` assignments and some others give the target."""
        if not first and not others:
            return _is(document, target)
        try:
            changed = reduce(_merged, [overrides[index] for index in others], before[first])
        except SpecError:
            return False
        made = [*overrides[:first], *(overrides[index] for index in others)]
        return _is(without_abandoned_blocks(changed, made), target)

    if not reached(len(steps), ()):
        return None
    kept: list[int] = []
    for index, (_, required) in reversed([*enumerate(steps)]):
        if required or not reached(index, kept):
            kept.insert(0, index)
    return [steps[index][0] for index in kept]


def _merged(document: Document, override: Document) -> Document:
    return merge(document, override, held_by_new_kind)


def _is(document: Document, target: Mapping[str, Any]) -> bool:
    """Whether a document has a canonical form."""
    try:
        return complete(validate(with_named_blocks(document))) == target
    except SpecError:
        return False
