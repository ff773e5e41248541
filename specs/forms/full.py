"""A spec as plain data with every default filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specs.base.base import Spec
from specs.base.roles import field_values


def full(value: Any) -> Any:
    """A spec, or part of one, as JSON data with the kind and all fields of every part."""
    if isinstance(value, Spec):
        dumped: Any = value.model_dump(mode="json")
        if not isinstance(dumped, Mapping):
            return dumped
        return {key: full(part) for key, part in field_values(value).items()}
    if isinstance(value, Mapping):
        return {key: full(item) for key, item in value.items()}
    return [full(item) for item in value] if isinstance(value, tuple) else value
