"""What presets there are.  Reads the first lines of each as text, so a listing takes no parsing and no validation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PRESETS = Path(__file__).parent / "presets"


@dataclass(frozen=True)
class Preset:
    """A preset as listings show it; ``parameters`` is the published or asserted count."""

    name: str
    architecture: str
    parameters: int | None
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
    count = data[name].get("parameters")
    year = _inherited(data, name, "year")
    return Preset(
        name,
        _inherited(data, name, "architecture"),
        int(count) if count else None,
        int(year) if year else None,
        data[name].get("summary", ""),
        _inherited(data, name, "source"),
    )


_TOP_LEVEL = re.compile(r"^([a-z_]+): *(.*)$", re.MULTILINE)
_EXPECTED = re.compile(r"^expect:(?:(?!^\S).)*?\bparameters: *(\d+)", re.MULTILINE | re.DOTALL)


def _first_values(text: str) -> dict[str, str]:
    """The values that stand on the lines of a preset's own keys, and the parameters that it expects."""
    values = {key: value.strip("'\"") for key, value in _TOP_LEVEL.findall(text)}
    count = _EXPECTED.search(text)
    return {**values, "parameters": count[1]} if count else values


def _inherited(data: Mapping[str, Mapping[str, str]], name: str, key: str) -> str:
    """A preset's own value, or else that of the preset which it extends."""
    while key not in data[name] and "extends" in data[name]:
        name = data[name]["extends"]
    return data[name].get(key, "")
