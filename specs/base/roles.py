"""The role of a field: what a number in a spec measures, whatever its field is called.

A field states its role in its annotation, ``hidden: Annotated[Width, Role.WIDTH]``.  Reduced and shrunk models are made by
role, so that the fields of a plugin take part by stating one, and a field without a role keeps its value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum, auto
from typing import Any, TypeVar

from pydantic import BaseModel

Part = TypeVar("Part", bound=BaseModel)


class Role(Enum):
    """The measure that a field holds.  ``None`` as the value of a component's first ``HEAD_WIDTH`` stands for ``d_model / heads``, and
    of a further one for the first."""

    WIDTH = auto()
    """A width in proportion to ``d_model``, such as the hidden width of a feed-forward."""
    HEADS = auto()
    """The number of query heads."""
    KEY_VALUE_HEADS = auto()
    """The number of key/value heads, which divides the number of query heads."""
    HEAD_WIDTH = auto()
    """A width inside one head; the first of a component is the width of its queries and keys."""
    ROTATED = auto()
    """The number of rotated dimensions of a head."""
    PER_ROTATED_PAIR = auto()
    """A tuple with one number per rotated pair of dimensions."""
    PAIRS_BY_AXIS = auto()
    """A tuple of numbers of rotated pairs of dimensions, which together are all of a head's."""
    LABELS = auto()
    """The number of classes of a head, which config files name."""
    DROPOUT = auto()
    """A probability of dropping values in training."""
    WINDOW = auto()
    """A number of tokens that a query sees."""
    SOFTCAP = auto()
    """A bound on scores that is approached smoothly."""
    CLIP = auto()
    """A bound at which values are cut off."""
    ROPE_SWITCH_LENGTH = auto()
    """An input length beyond which other rotary frequencies apply."""


def field_values(part: object) -> dict[str, Any]:
    """The values of the fields of one part by name; none for what has no fields."""
    return (
        {name: getattr(part, name) for name in type(part).model_fields} if isinstance(part, BaseModel) else {}
    )


def changed_fields(part: BaseModel, names: Iterable[str]) -> dict[str, Any]:
    """The values of some fields of one part that differ from their defaults, by name."""
    fields, values = type(part).model_fields, field_values(part)
    return {name: values[name] for name in names if values[name] != fields[name].default}


def fields_by_role(part: BaseModel) -> Iterator[tuple[str, Role, Any]]:
    """The fields of one part that state a role: name, role and value."""
    for name, value in field_values(part).items():
        for mark in type(part).model_fields[name].metadata:
            if isinstance(mark, Role):
                yield name, mark, value


def pairs_scaled(pairs: tuple[int, ...], total: int) -> tuple[int, ...]:
    """Numbers of pairs in about the same proportion, with a sum of ``total``."""
    scaled = [count * total // sum(pairs) for count in pairs]
    return (*scaled[:-1], total - sum(scaled[:-1]))


def rewritten(part: Part, change: Callable[[Any], Mapping[str, Any]]) -> Part:
    """The part with ``change`` applied to itself and to every part inside, from the inside out.

    ``change`` returns new values of fields by name.  The result is not validated.
    """
    inside = field_values(part)
    changed = {name: _rewritten(value, change) for name, value in inside.items()}
    part = part.model_copy(update={name: new for name, new in changed.items() if new is not inside[name]})
    update = change(part)
    return part.model_copy(update=update) if update else part


def _rewritten(value: Any, change: Callable[[Any], Mapping[str, Any]]) -> Any:
    if isinstance(value, BaseModel):
        return rewritten(value, change)
    if isinstance(value, tuple):
        return tuple(_rewritten(item, change) for item in value)
    if isinstance(value, dict):
        return {key: _rewritten(item, change) for key, item in value.items()}
    return value


def head_widths(part: BaseModel) -> dict[str, Any]:
    """The widths inside one head by their fields, without those that stand for the first."""
    widths = [(name, value) for name, role, value in fields_by_role(part) if role is Role.HEAD_WIDTH]
    return {name: value for index, (name, value) in enumerate(widths) if index == 0 or value is not None}
