"""The reference of the spec language, from its JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from specs.base import registry
from specs.files.schema import json_schema

_HUGE = 2**14
"""Bounds from here on guard against slips of the pen, and no model comes near them."""

_INTRODUCTION = """# The spec language

A spec is a YAML mapping with the keys of [Model](#model). Each table gives a key, its values, its default and its meaning;
bold keys are required. Values such as [norm](#norm) are mappings with a `kind`, from which their other keys follow.

Everything is checked: an unknown key is an error, and so is `"12"` where a number belongs. Numbers follow YAML 1.2: `1e-5` is a
number, `no` is a string. `zoo show SPEC` prints any spec in full.

This page is generated from the JSON Schema that `zoo schema` prints, with which editors complete keys and show the same
descriptions:

```console
$ zoo schema > zoo.schema.json
```

```yaml
# yaml-language-server: $schema=zoo.schema.json
extends: gpt2
```
"""


def spec_page() -> str:
    """Every key of the language, as Markdown: the model, its stacks, the kinds of each slot, and other parts."""
    schema = json_schema()["$defs"]
    slots = [name for name in _reached(schema, "Model") if name in registry.slots()]
    kinds = {slot: [_name(choice) for choice in schema[slot]["oneOf"]] for slot in slots}
    shown = {"Model", "Stack", *slots, *(name for names in kinds.values() for name in names)}
    extends = schema["Model.partial"]["properties"]["extends"]
    schema["Model"]["properties"] = {
        **schema["Model"]["properties"],
        "extends": {"type": "string", "description": extends["description"]},
    }
    lines = [_INTRODUCTION]
    for name in ("Model", "Stack"):
        lines += [f"## {name}", "", schema[name]["description"], "", *_table(schema[name]), ""]
    for slot in slots:
        lines += _slot(slot, {name: schema[name] for name in kinds[slot]})
    lines += ["## Other parts", ""]
    for name in sorted(name for name in schema if name not in shown and not name.endswith(".partial")):
        part = _mapping(schema[name])
        lines += [f"### {name}", "", part["description"], "", *_table(part), ""]
    return "\n".join(lines)


def _reached(schema: Mapping[str, Any], root: str) -> list[str]:
    """The definitions that one leads to, the nearest first."""
    found = [root]
    for name in found:
        found += [each for each in dict.fromkeys(_references(schema[name])) if each not in found]
    return found


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict) and "$ref" in node:
        yield _name(node).removesuffix(".partial")
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _references(each)


def _mapping(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """A definition, or of its alternatives the one that is a mapping."""
    alternatives = (definition, *definition.get("anyOf", ()))
    return next(each for each in alternatives if "properties" in each)


def _slot(slot: str, kinds: Mapping[str, Any]) -> Iterator[str]:
    """A slot: the keys that all of its kinds take, and each kind with its own."""
    fields = [each["properties"] for each in kinds.values()]
    common = [
        key for key in fields[0] if key != "kind" and all(each.get(key) == fields[0][key] for each in fields)
    ]
    yield from (f"## {slot}", "")
    if default := registry.default_kind(slot):
        yield from (f"A mapping without a `kind` is of kind `{default}`.", "")
    if common:
        yield from ("All kinds take:", "", *_table(next(iter(kinds.values())), only=common), "")
    for each in kinds.values():
        kind = each["properties"]["kind"]["const"]
        own = [key for key in each["properties"] if key != "kind" and key not in common]
        yield from (f"### {slot}: {kind}", "", each["description"], "")
        if own:
            yield from (*_table(each, only=own), "")


def _table(definition: Mapping[str, Any], only: list[str] | None = None) -> Iterator[str]:
    """A row for each key of a mapping, or for some."""
    required = definition.get("required", ())
    yield from ("| key | values | default | meaning |", "|---|---|---|---|")
    for key, field in definition["properties"].items():
        if only is None or key in only:
            name = f"**`{key}`**" if key in required else f"`{key}`"
            default = "" if field.get("default") in (None, "") else f"`{_scalar(field['default'])}`"
            meaning = "<br>".join([field.get("description", ""), *_values_described(field)])
            yield f"| {name} | {_values(field)} | {default} | {meaning} |".replace("\n", " ")


def _values(field: Mapping[str, Any]) -> str:
    """What a key may be, as Markdown."""
    if "$ref" in field:
        name = _name(field)
        return f"[{name.removesuffix('.partial')}](#{name.removesuffix('.partial').lower()})"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    for choices in ("anyOf", "oneOf"):
        if choices in field:
            found = [_values(each) for each in field[choices] if each.get("type") != "null"]
            return " or ".join(dict.fromkeys(found))
    if "prefixItems" in field:
        return f"list of {len(field['prefixItems'])}: {', '.join(map(_values, field['prefixItems']))}"
    if field["type"] == "array":
        return f"list of {_values(field['items'])}"
    if field["type"] == "object":
        return f"mapping of names to {_values(field['additionalProperties'])}"
    return field["type"] + _bounds(field)


def _bounds(field: Mapping[str, Any]) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    found = [f"{sign} {field[key]}" for key, sign in signs.items() if field.get(key, _HUGE) < _HUGE]
    return f", {', '.join(found)}" if found else ""


def _values_described(field: Mapping[str, Any]) -> Iterator[str]:
    """A line for each value that has a description; of alternatives, those of each."""
    for value, text in zip(field.get("enum", ()), field.get("enumDescriptions", ()), strict=False):
        yield f"`{value}`: {text}"
    for choices in ("anyOf", "oneOf"):
        for each in field.get(choices, ()):
            yield from _values_described(each)


def _scalar(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _name(reference: Mapping[str, Any]) -> str:
    return str(reference["$ref"]).rpartition("/")[2]
