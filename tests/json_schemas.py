"""A validator of JSON Schema, whose import takes seconds, which tests that use none need not wait for."""

from __future__ import annotations

from typing import Any


def validator_of(schema: Any) -> Any:
    """A validator of a schema, which has to be one."""
    import jsonschema

    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)
