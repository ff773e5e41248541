"""The files of the presets, and their names in order."""

from __future__ import annotations

import re
from pathlib import Path

PRESETS = Path(__file__).parents[1] / "presets"


def preset_names() -> list[str]:
    """The names of the presets, in the order of the numbers in them."""
    return sorted((path.stem for path in PRESETS.glob("*.yaml")), key=natural)


def natural(name: str) -> list[tuple[float, str]]:
    """A key that sorts names by the numbers in them, and sizes by what they stand for: 350m before 2b before 13b."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([mb](?![a-z]))?|(\D+)", name)
    return [(float(number or -1) * {"m": 1e6, "b": 1e9}.get(unit, 1), text) for number, unit, text in parts]
