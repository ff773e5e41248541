"""The config fields that the reference implementation of each family reads.

``reference_fields.json`` lists them by ``model_type``, and the fields of every family under "".  It is written by
``python -m tests.parity.reference_fields`` from transformers, or from the code that is published with a checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from specs.base.plugins import FAMILIES, plugin_entries

FILE = Path(__file__).with_suffix(".json")


@cache
def reference_fields() -> Mapping[str, frozenset[str]]:
    """The fields by model_type."""
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    return {model_type: frozenset(names) for model_type, names in stored.items()}


def reference_has(model_type: str, name: str) -> bool:
    """Return whether the reference of a family has a field; of a plugin's family, whose fields are not recorded, any may be one."""
    fields = reference_fields()
    of_plugin = any(entry.name == model_type for entry in plugin_entries(FAMILIES))
    return name in fields[""] or name in fields.get(model_type, ()) or of_plugin
