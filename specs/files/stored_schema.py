"""The JSON Schema of the built-in kinds, stored so that printing it builds none of their classes.

``make digests`` writes it, and a test compares it with :func:`specs.files.schema.json_schema`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from specs.base.plugins import plugin_entries

STORED = Path(__file__).parents[1] / "zoo.schema.json"


def spec_schema() -> dict[str, Any]:
    """The schema of a spec file: the stored one, or a generated one where plugins add kinds."""
    if plugin_entries():
        from specs.files.schema import json_schema

        return json_schema()
    schema: dict[str, Any] = json.loads(STORED.read_text("utf-8"))
    return schema
