"""The catalog of presets, read as text so that a listing needs no YAML parsing or validation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PRESETS = Path(__file__).parents[1] / "presets"


@dataclass(frozen=True)
class Preset:
    """A preset in a listing; ``parameters`` and ``active_parameters`` are the expected counts."""

    name: str
    architecture: str
    parameters: int | None
    active_parameters: int | None
    year: int | None
    summary: str
    source: str


def preset_names() -> list[str]:
    """The names of the presets, sorted."""
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


def presets() -> list[Preset]:
    """Every preset, sorted by name."""
    names = preset_names()
    data = {name: _first_values((PRESETS / f"{name}.yaml").read_text("utf-8")) for name in names}
    return [_preset(data, name) for name in names]


def _preset(data: Mapping[str, Mapping[str, str]], name: str) -> Preset:
    count, active = (data[name].get(key) for key in _COUNTS)
    year = _inherited(data, name, "year")
    return Preset(
        name,
        _inherited(data, name, "architecture"),
        int(count) if count else None,
        int(active) if active else None,
        int(year) if year else None,
        data[name].get("summary", ""),
        _inherited(data, name, "source"),
    )


_TOP_LEVEL = re.compile(r"^([a-z_]+): *(.*)$", re.MULTILINE)
_COUNTS = ("parameters", "active_parameters")
_EXPECTED = {
    key: re.compile(rf"^expect:(?:(?!^\S).)*?\b{key}: *(\d+)", re.MULTILINE | re.DOTALL) for key in _COUNTS
}


def _first_values(text: str) -> dict[str, str]:
    """The top-level scalar values of a preset, and its expected parameter counts."""
    values = {key: value.strip("'\"") for key, value in _TOP_LEVEL.findall(text)}
    counts = {key: count[1] for key, pattern in _EXPECTED.items() if (count := pattern.search(text))}
    return values | counts


def _inherited(data: Mapping[str, Mapping[str, str]], name: str, key: str) -> str:
    """A preset's own value, or the value inherited through ``extends``."""
    while key not in data[name] and "extends" in data[name]:
        name = data[name]["extends"]
    return data[name].get(key, "")
