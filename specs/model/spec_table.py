"""A spec as a table: the path of each part, as assignments name it, and its values that differ from the defaults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from specs.base.roles import field_values

LEFT_OUT = frozenset({"name", "summary", "source", "year", "expect"})
"""The fields of a model that say nothing about its architecture."""


def spec_rows(part: BaseModel, path: str = "", base: object = None) -> Iterator[tuple[str, str]]:
    """The values of a part in one row, then the rows of its parts.

    ``base`` is the part that this one varies: values that both have are left out.
    """
    fields = type(part).model_fields
    theirs = field_values(base)
    values = {
        name: value
        for name, value in field_values(part).items()
        if (value is not None or theirs.get(name) is not None)
        and (path or name not in LEFT_OUT)
        and (name == "kind" or value != fields[name].get_default())
        and (base is None or value != theirs.get(name))
    }
    inner = {name: value for name, value in values.items() if isinstance(value, BaseModel | dict)}
    own = {name: value for name, value in values.items() if name not in inner}
    if path:
        words = [_text(value) if name == "kind" else f"{name} {_text(value)}" for name, value in own.items()]
        if words:
            yield path, ", ".join(words)
    else:
        yield from ((name, _text(value)) for name, value in own.items())
    for name, value in inner.items():
        yield from _inner_rows(f"{path}.{name}".lstrip("."), value, part, theirs.get(name))


def _inner_rows(path: str, value: Any, owner: BaseModel, base: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, BaseModel):
        yield from spec_rows(value, path, base if type(base) is type(value) else None)
        return
    for key, entry in value.items():
        if isinstance(entry, BaseModel):  # a named block varies the stack's
            block = field_values(owner).get("block")
            yield from spec_rows(entry, f"{path}.{key}", block if type(block) is type(entry) else None)


def _text(value: object) -> str:
    """A value as a spec writes it, without its defaults."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int():
            return f"{value:,}"
        case BaseModel():
            set_fields = value.model_dump(exclude_defaults=True, exclude_none=True)
            return _text(set_fields)
        case dict():
            return f"{{{', '.join(f'{key}: {_text(entry)}' for key, entry in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(_text, value))}]"
    return str(value)
