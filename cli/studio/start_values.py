"""Initial values for keys that a new kind needs: the presets' values, the most frequent first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Any

from specs.base.errors import SpecError, SpecPath
from specs.language.preset_files import PRESETS, preset_names
from specs.language.reading import read_text
from specs.language.spec_file import read_file
from specs.language.writing import flow

_PLAIN: dict[str, list[Any]] = {
    "d_model": [512],
    "vocab_size": [32000],
    "context_length": [1024],
    "layers": [6],
    "name": ["my-model"],
}
"""Where no preset's choice says anything of another model."""


def start_values(text: str, path: SpecPath) -> list[Any]:
    """Values for the last key of a path: the values of presets with the same kind come first."""
    key = str(path[-1])
    if key in _PLAIN:
        return _PLAIN[key]
    kind = None
    try:
        data: Any = read_text(text, "").data
    except SpecError:
        return []
    width = data.get("d_model")
    for part in path[:-1]:
        data = data.get(part) if isinstance(data, Mapping) else None
    if isinstance(data, Mapping):
        kind = data.get("kind")
    by_kind = _by_kind()
    values = [*by_kind.get((kind, key), ()), *by_kind.get((None, key), ())]
    if key == "hidden" and isinstance(width, int):
        return [4 * width, *values]
    return values


def prepare_start_values() -> None:
    """Read the presets ahead, which takes a moment."""
    _by_kind()


@cache
def _by_kind() -> dict[tuple[str | None, str], list[Any]]:
    """The values of each key by the kind that it belongs to."""
    counted: dict[tuple[str | None, str], Counter[str]] = defaultdict(Counter)
    for name in preset_names():
        _count(read_file(PRESETS / f"{name}.yaml").data, counted)
    return {
        key: [read_text(f"value: {value}", "").data["value"] for value, _ in values.most_common(12)]
        for key, values in counted.items()
    }


def _count(part: Any, counted: dict[tuple[str | None, str], Counter[str]]) -> None:
    if isinstance(part, list):
        for item in part:
            _count(item, counted)
    if not isinstance(part, Mapping):
        return
    for key, value in part.items():
        _count(value, counted)
        if value is not None and not isinstance(value, list):
            for kind in (part.get("kind"), None):
                counted[kind, key][flow(value)] += 1
