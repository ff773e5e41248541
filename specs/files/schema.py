"""The JSON Schema of the spec language with every registered kind, for editors."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from specs.base import registry
from specs.base.base import SLOT_KEY
from specs.base.descriptions import field_descriptions, one_line
from specs.language.catalog import presets
from specs.model.model import Model
from specs.model.stack import Stack

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PARTIAL = ".partial"


class _Described(GenerateJsonSchema):
    """Pydantic's generator with the docstrings of fields, and without titles that repeat the keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def sort(self, value: Any, parent_key: str | None = None) -> Any:
        return value  # the order of the classes needs no sorting

    def model_schema(self, schema: Any) -> dict[str, Any]:
        generated = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        fields: dict[str, Any] = generated.get("properties", {})
        for name, text in field_descriptions(model).items():
            fields[name].setdefault("description", text)
        if "description" in generated:
            generated["description"] = one_line(generated["description"])
            if "kind" in fields:
                fields["kind"].setdefault("description", generated["description"].partition("\n")[0])
        return generated


def json_schema() -> dict[str, Any]:
    """The schema of a spec file: a whole model, or with ``extends`` any part of one.

    It covers types, bounds, keys and kinds; rules across keys are checked by ``zoo validate``.
    """
    kinds = {slot: [kind.spec for kind in registry.kinds(slot).values()] for slot in registry.slots()}
    models: list[type[BaseModel]] = list(
        dict.fromkeys([Model, Stack, *(spec for specs in kinds.values() for spec in specs)])
    )
    for model in models:
        model.model_rebuild()
    references, generated = models_json_schema(
        [(model, "validation") for model in models], schema_generator=_Described
    )
    whole = _tidied(generated["$defs"])
    for slot, specs in kinds.items():
        choices = [references[spec, "validation"] for spec in specs]
        for choice in choices:
            definition = whole[_name(choice)]
            if definition["properties"]["kind"]["const"] != registry.default_kind(slot):
                definition["required"] = ["kind", *definition.get("required", [])]
        whole[slot] = {"oneOf": choices}
    # A named block states only its changes to the stack's block.
    stack = whole[_name(references[Stack, "validation"])]
    stack["properties"]["blocks"]["additionalProperties"] = {"$ref": f"#/$defs/block{_PARTIAL}"}
    partial = {f"{name}{_PARTIAL}": _partial(definition) for name, definition in whole.items()}
    root = _name(references[Model, "validation"])
    variant = partial[root + _PARTIAL]
    variant["properties"] = {"extends": _extends(), **variant["properties"]}
    return {
        "$schema": _DIALECT,
        "title": "zoo spec",
        "type": "object",
        "if": {"required": ["extends"]},
        "then": {"$ref": f"#/$defs/{root}{_PARTIAL}"},
        "else": {"$ref": f"#/$defs/{root}"},
        "$defs": {**whole, **partial},
    }


def zoo_file_schema() -> dict[str, Any]:
    """The schema of a zoo file."""
    from specs.files.export_options import ArtefactOptions
    from specs.files.zoo_file import ZooFile

    models: list[type[BaseModel]] = [ZooFile, ArtefactOptions]
    references, generated = models_json_schema(
        [(model, "validation") for model in models], schema_generator=_Described
    )
    definitions = _tidied(generated["$defs"])
    root = definitions.pop(_name(references[ZooFile, "validation"]))
    options = definitions[_name(references[ArtefactOptions, "validation"])]["properties"]
    for part in ("ModelEntry", "Defaults"):
        fields = definitions[part]["properties"]
        fields["options"] |= {"properties": options, "additionalProperties": False}
        values = {name: {"type": "array", "items": schema, "minItems": 1} for name, schema in options.items()}
        fields["matrix"] |= {"properties": values, "additionalProperties": False}
        fields["exclude"]["items"] = {"type": "object", "properties": options, "additionalProperties": False}
    extends = {"type": "string", "description": "Path of the zoo file that this one changes, relative to it."}
    root["properties"] = {"extends": extends, **root["properties"]}
    root["anyOf"] = [{"required": ["models"]}, {"required": ["extends"]}]
    root.pop("required", None)
    return {"$schema": _DIALECT, "title": "zoo file", **root, "$defs": definitions}


def _extends() -> dict[str, Any]:
    """The schema of ``extends``: completes the presets, and accepts any path."""
    listed = presets()
    names = {
        "enum": [preset.name for preset in listed],
        "enumDescriptions": [preset.summary for preset in listed],
    }
    return {
        "description": "Base of this spec, which states only its changes: a preset, or the path of a file relative to this one.",
        "anyOf": [names, {"type": "string"}],
    }


def _name(reference: dict[str, Any]) -> str:
    """The name of the definition that a ``$ref`` points to."""
    return str(reference["$ref"]).rpartition("/")[2]


def _tidied(node: Any, *, names: bool = True) -> Any:
    """A schema with slots as references, descriptions as Markdown, and without titles.

    Defaults of null and of whole parts are omitted.  ``names`` means that the keys of a mapping are names chosen by the
    user, such as property names, rather than keywords of JSON Schema.
    """
    if isinstance(node, list):
        return [_tidied(item, names=False) for item in node]
    if not isinstance(node, dict):
        return node
    if names:
        return {key: _tidied(value, names=False) for key, value in node.items()}
    tidied: dict[str, Any] = {}
    for key, value in node.items():
        if key == SLOT_KEY:
            tidied["$ref"] = f"#/$defs/{value}"
        elif key == "default":
            if value is not None and not isinstance(value, dict) and SLOT_KEY not in node:
                tidied[key] = value
        elif key != "title":
            tidied[key] = _tidied(value, names=key == "properties")
            if key == "description" and "`" in value:
                tidied["markdownDescription"] = value  # editors do not render Markdown in a plain description
    return tidied


def _partial(node: Any, *, names: bool = False) -> Any:
    """A schema without required keys, for overrides, which may keep the base's kind."""
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
