"""Resolved specs: plain data without `extends`, and with all defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from specs.base.base import OmitDefault
from specs.base.registry import held_by_new_kind, kinds, slots
from specs.base.roles import field_values
from specs.model.model import Model


def resolved(model: Model) -> dict[str, Any]:
    """The model as JSON data that reads back as the same model; unset and empty values are omitted."""
    data: dict[str, Any] = model.model_dump(mode="json")
    for name, stack in model.stacks():
        own = data[name]
        block = _compact(own["block"], stack.block)
        own["blocks"] = {
            key: _changes(variant, block, stack.blocks[key]) for key, variant in own["blocks"].items()
        }
        if not isinstance(stack.layers, int):
            own["layers"] = [
                _without_omitted(*pair) for pair in zip(own["layers"], stack.layers, strict=True)
            ]
    return _compact(data, model)


def without_omitted(part: Mapping[str, Any], spec: type[BaseModel] | None = None) -> dict[str, Any]:
    """Remove null, and the defaults that a resolved spec omits, from plain data with all fields.

    ``spec``: the class of a part without a kind.
    """
    if "kind" in part:
        named = [kinds(slot)[part["kind"]].spec for slot in slots() if part["kind"] in kinds(slot)]
        spec = max(
            named, key=lambda candidate: len(candidate.model_fields.keys() & part.keys()), default=None
        )
    kept: dict[str, Any] = {}
    for key, value in part.items():
        field = spec.model_fields.get(key) if spec is not None else None
        if isinstance(value, Mapping):
            default = None if field is None else field.default
            if inner := without_omitted(value, type(default) if isinstance(default, BaseModel) else None):
                kept[key] = inner
        elif value is not None and (field is None or not _has_omitted_default(field, value)):
            kept[key] = value
    return kept


def _compact(data: Mapping[str, Any], spec: Any) -> dict[str, Any]:
    """Remove null, empty values and omitted defaults from a spec's data; a null that is not the default is kept."""
    compact = {}
    for key, value in data.items():
        is_part = isinstance(value, Mapping) and key != "blocks"
        kept = _compact(value, _parts(spec).get(key)) if is_part else value
        is_kept = kept not in (None, "", {}) or (value is None and _states_null(spec, key))
        if is_kept and not _is_omitted(spec, key, value):
            compact[key] = kept
    return compact


def _parts(spec: Any) -> Mapping[str, Any]:
    """The parts of a spec by key, or several parts by name."""
    return spec if isinstance(spec, Mapping) else field_values(spec)


def _changes(data: Mapping[str, Any], base: Mapping[str, Any], spec: Any) -> dict[str, Any]:
    """The changes of a spec's data relative to the compact data it is merged with."""
    changes: dict[str, Any] = {}
    if base.get("kind") != data.get("kind"):
        base = held_by_new_kind(base, data["kind"])
    for key, value in data.items():
        below, part = base.get(key), field_values(spec).get(key)
        if below is None:
            changes |= {} if value is None and key in base else _compact({key: value}, spec)
        elif isinstance(value, Mapping) and isinstance(below, Mapping):
            if inner := _changes(value, below, part):
                changes[key] = inner
        elif value != below:
            changes[key] = _compact(value, part) if isinstance(value, Mapping) else value
    return changes


def _without_omitted(data: Mapping[str, Any], spec: Any) -> dict[str, Any]:
    """The data of an entry of ``layers`` without omitted defaults."""
    kept = {key: value for key, value in data.items() if not _is_omitted(spec, key, value)}
    if "pattern" in kept:
        kept["pattern"] = [
            _without_omitted(*pair) for pair in zip(kept["pattern"], spec.pattern, strict=True)
        ]
    return kept


def _states_null(spec: Any, key: str) -> bool:
    """Whether null differs from a field's default."""
    field = type(spec).model_fields.get(key) if isinstance(spec, BaseModel) else None
    return field is not None and field.default is not None


def _is_omitted(spec: Any, key: str, value: Any) -> bool:
    """Whether a field has its default, and its annotation says to omit it."""
    field = type(spec).model_fields.get(key) if isinstance(spec, BaseModel) else None
    return field is not None and _has_omitted_default(field, value)


def _has_omitted_default(field: FieldInfo, value: Any) -> bool:
    return any(isinstance(mark, OmitDefault) for mark in field.metadata) and bool(value == field.default)
