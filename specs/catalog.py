"""What presets there are.  Reads no more of each than its first keys, so a listing takes no validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specs.reading import read_file

PRESETS = Path(__file__).parent / "presets"


@dataclass(frozen=True)
class Preset:
    """A preset as listings show it; ``parameters`` is the published or asserted count."""

    name: str
    architecture: str
    parameters: int | None
    summary: str


def preset_names() -> list[str]:
    """The names of the presets, sorted."""
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


def presets() -> list[Preset]:
    """Every preset, sorted by name."""
    names = preset_names()
    data = {name: read_file(PRESETS / f"{name}.yaml").data for name in names}
    return [
        Preset(
            name,
            str(_inherited(data, name, "architecture")),
            data[name].get("expect", {}).get("parameters"),
            str(_inherited(data, name, "summary")),
        )
        for name in names
    ]


def _inherited(data: Mapping[str, Mapping[str, Any]], name: str, key: str) -> Any:
    """A preset's own value, or else that of the preset which it extends."""
    while key not in data[name]:
        name = data[name]["extends"]
    return data[name][key]
