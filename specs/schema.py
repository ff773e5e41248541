"""The JSON Schema of the spec language, with every registered kind, for editors to complete and check by."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from specs import registry
from specs.base import SLOT_KEY
from specs.model import Model
from specs.stack import Stack

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PARTIAL = ".partial"
_EXTENDS = {"type": "string", "description": "A preset, or a file beside this one, that this spec changes."}


class _Untitled(GenerateJsonSchema):
    """Pydantic's generator without a title for every field, which would only repeat its key."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def json_schema() -> dict[str, Any]:
    """The schema of a spec file: a whole model, or with ``extends`` any part of one.

    It knows types, bounds, keys and kinds; rules that span several keys are left to ``zoo validate``.
    """
    kinds = {slot: [kind.spec for kind in registry.kinds(slot).values()] for slot in registry.slots()}
    models: list[type[BaseModel]] = list(
        dict.fromkeys([Model, Stack, *(spec for specs in kinds.values() for spec in specs)])
    )
    for model in models:
        model.model_rebuild()
    references, generated = models_json_schema(
        [(model, "validation") for model in models], schema_generator=_Untitled
    )
    whole = _tidied(generated["$defs"])
    for slot, specs in kinds.items():
        choices = [references[spec, "validation"] for spec in specs]
        for choice in choices:
            definition = whole[_name(choice)]
            if definition["properties"]["kind"]["const"] != registry.default_kind(slot):
                definition["required"] = ["kind", *definition.get("required", [])]
        whole[slot] = {"oneOf": choices}
    # A named block says only how it differs from its stack's block.
    stack = whole[_name(references[Stack, "validation"])]
    stack["properties"]["blocks"]["additionalProperties"] = {"$ref": f"#/$defs/block{_PARTIAL}"}
    partial = {f"{name}{_PARTIAL}": _partial(definition) for name, definition in whole.items()}
    root = _name(references[Model, "validation"])
    variant = partial[root + _PARTIAL]
    variant["properties"] = {"extends": _EXTENDS, **variant["properties"]}
    return {
        "$schema": _DIALECT,
        "title": "zoo spec",
        "type": "object",
        "if": {"required": ["extends"]},
        "then": {"$ref": f"#/$defs/{root}{_PARTIAL}"},
        "else": {"$ref": f"#/$defs/{root}"},
        "$defs": {**whole, **partial},
    }


def _name(reference: dict[str, Any]) -> str:
    """The name of a definition that a ``$ref`` points to."""
    return str(reference["$ref"]).rpartition("/")[2]


def _tidied(node: Any, *, names: bool = True) -> Any:
    """A schema with slots as references, and without titles or defaults that are null.

    ``names`` says that the keys of a mapping are a user's words, such as property names, not the schema's.
    """
    if isinstance(node, list):
        return [_tidied(item, names=False) for item in node]
    if not isinstance(node, dict):
        return node
    if SLOT_KEY in node:
        return {"$ref": f"#/$defs/{node[SLOT_KEY]}"}
    tidied = {}
    for key, value in node.items():
        if not names and (key == "title" or (key == "default" and value is None)):
            continue
        tidied[key] = value if key == "default" else _tidied(value, names=not names and key == "properties")
    return tidied


def _partial(node: Any, *, names: bool = False) -> Any:
    """A schema that asks for nothing: overrides say only what differs, and may leave the kind as it is."""
    if isinstance(node, list):
        return [_partial(item) for item in node]
    if not isinstance(node, dict):
        return node
    loose = {}
    for key, value in node.items():
        if key == "$ref":
            loose[key] = value if value.endswith(_PARTIAL) else value + _PARTIAL
        elif names or key != "required":
            name = "anyOf" if key == "oneOf" and not names else key
            loose[name] = _partial(value, names=key == "properties" and not names)
    return loose
