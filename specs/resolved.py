"""A model as plain data: everything resolved, nothing left to `extends` or to defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from specs.base import Unsaid
from specs.model import Model


def resolved(model: Model) -> dict[str, Any]:
    """The model as JSON data that reads back as the same model; what is unset or empty is left out."""
    data: dict[str, Any] = model.model_dump(mode="json")
    for name, stack in model.stacks():
        own = data[name]
        # Named blocks are laid over the stack's block when read, so what they unset must be written out.
        own["blocks"] = {
            key: _compact(block, own["block"], stack.blocks[key]) for key, block in own["blocks"].items()
        }
        if not isinstance(stack.layers, int):
            own["layers"] = [_without_unsaid(*pair) for pair in zip(own["layers"], stack.layers, strict=True)]
    return _compact(data, {}, model)


def _compact(data: Mapping[str, Any], below: Any, spec: Any) -> dict[str, Any]:
    """The data of a spec without what is null, empty or better unsaid, unless that differs from ``below``."""
    compact = {}
    for key, value in data.items():
        under = below.get(key) if isinstance(below, Mapping) else None
        inner = getattr(spec, key, None)
        kept = value if key == "blocks" or not isinstance(value, Mapping) else _compact(value, under, inner)
        if kept in (None, "", {}) and not (kept is None and under is not None):
            continue
        if _is_unsaid(spec, key, value) and under in (None, value):
            continue
        compact[key] = kept
    return compact


def _without_unsaid(data: Mapping[str, Any], spec: Any) -> dict[str, Any]:
    """The data of an entry of ``layers`` without what is better unsaid."""
    kept = {key: value for key, value in data.items() if not _is_unsaid(spec, key, value)}
    if "pattern" in kept:
        kept["pattern"] = [_without_unsaid(*pair) for pair in zip(kept["pattern"], spec.pattern, strict=True)]
    return kept


def _is_unsaid(spec: Any, key: str, value: Any) -> bool:
    """Whether a field has its default and is annotated as left out then."""
    field = type(spec).model_fields.get(key) if isinstance(spec, BaseModel) else None
    marked = field is not None and any(isinstance(mark, Unsaid) for mark in field.metadata)
    return marked and field is not None and value == field.default
