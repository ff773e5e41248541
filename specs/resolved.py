"""A model as plain data: everything resolved, nothing left to `extends` or to defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specs.model import Model


def resolved(model: Model) -> dict[str, Any]:
    """The model as JSON data that reads back as the same model; what is unset or empty is left out."""
    data: dict[str, Any] = model.model_dump(mode="json")
    for name, _ in model.stacks():
        stack = data[name]
        # Named blocks are laid over the stack's block when read, so what they unset must be written out.
        stack["blocks"] = {key: _compact(block, stack["block"]) for key, block in stack["blocks"].items()}
    return _compact(data, {})


def _compact(data: Mapping[str, Any], below: Any) -> dict[str, Any]:
    """The data without what is null or empty, but for a null over something that stands in ``below``."""
    compact = {}
    for key, value in data.items():
        under = below.get(key) if isinstance(below, Mapping) else None
        kept = value if key == "blocks" else _compact(value, under) if isinstance(value, Mapping) else value
        if kept in (None, "", {}) and not (kept is None and under is not None):
            continue
        compact[key] = kept
    return compact
