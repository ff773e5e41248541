"""The JSON Schema of the built-in kinds, which a wheel stores so that printing it builds none of their classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from specs.base.plugins import plugin_entries

STORED = Path(__file__).resolve().parents[1] / "zoo.schema.json"
"""The schema in an installed wheel, which ``setup.py`` writes; a checkout has none."""


def spec_schema() -> dict[str, Any]:
    """The schema of a spec file: the stored one, or a generated one in a checkout or if plugins add kinds."""
    if plugin_entries() or not STORED.exists():
        from specs.files.schema import json_schema

        return json_schema()
    schema: dict[str, Any] = json.loads(STORED.read_text("utf-8"))
    return schema
