"""Descriptions in the JSON Schema: every key and value has one, and plugins may give theirs."""

import copy
import re
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

import specs.base.registry
from specs.base.base import Component
from specs.base.descriptions import ValueDescriptions, field_descriptions
from specs.base.registry import register
from specs.files.device import Device
from specs.files.schema import json_schema
from specs.language.preset_files import preset_names

SENTENCE = re.compile(r"[A-Z`\[][^\n]{8,}\.")


@pytest.fixture(scope="module")
def definitions():
    return json_schema()["$defs"]


def mappings(node):
    """Every mapping in a schema."""
    if isinstance(node, dict):
        yield node
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from mappings(each)


def test_every_key_has_a_description_that_is_a_sentence(definitions):
    parts = [
        each for each in mappings(definitions) if "additionalProperties" in each and "properties" in each
    ]
    fields = [field for part in parts for field in part["properties"].items()]
    assert len(fields) > 500
    assert [key for key, each in fields if not SENTENCE.fullmatch(each.get("description", ""))] == []


def test_every_key_of_a_device_has_one():
    texts = field_descriptions(Device)
    assert set(texts) == set(Device.model_fields)
    assert all(map(SENTENCE.fullmatch, texts.values()))


def test_every_kind_has_one(definitions):
    for slot in specs.base.registry.slots():
        for choice in definitions[slot]["oneOf"]:
            definition = definitions[choice["$ref"].rpartition("/")[2]]
            assert SENTENCE.fullmatch(definition["description"].partition("\n")[0])


def test_values_are_described_one_by_one(definitions):
    whole = {name: each for name, each in definitions.items() if not name.endswith(".partial")}
    lists = [each for each in mappings(whole) if "enumDescriptions" in each]
    assert len(lists) > 15
    for each in lists:
        assert len(each["enum"]) == len(each["enumDescriptions"])
        assert all(map(re.compile(r"[A-Z`].+\.").fullmatch, each["enumDescriptions"]))
    undescribed = [each["enum"] for each in mappings(whole) if "enum" in each and each not in lists]
    assert undescribed == []


def test_editors_take_text_with_code_for_markdown(definitions):
    marked = definitions["MultiHead"]["properties"]["head_dim"]
    assert (
        marked["markdownDescription"]
        == marked["description"]
        == "Width of one head. Default: `d_model / heads`."
    )
    assert "markdownDescription" not in definitions["MultiHead"]["properties"]["dropout"]


def test_extends_completes_presets_and_takes_any_path(definitions):
    names, path = definitions["Model.partial"]["properties"]["extends"]["anyOf"]
    assert names["enum"] == preset_names()
    assert len(names["enumDescriptions"]) == len(names["enum"])
    assert path == {"type": "string"}


def test_a_subclass_describes_the_field_that_it_changes(definitions):
    assert definitions["Gated"]["properties"]["hidden"] == definitions["MLP"]["properties"]["hidden"]
    bias = {
        name: definitions[name]["properties"]["bias"]
        for name in ("LanguageModeling", "MaskedLanguageModeling")
    }
    assert "fixed" in bias["LanguageModeling"]["description"]
    assert "fixed" not in bias["MaskedLanguageModeling"]["description"]


@pytest.fixture
def slots(monkeypatch):
    monkeypatch.setattr(specs.base.registry, "_slots", copy.deepcopy(specs.base.registry._slots))


def test_a_plugin_s_fields_are_described_in_either_way_or_not_at_all(slots):
    @register("norm")
    class Scaled(Component):
        kind: Literal["scaled"] = "scaled"
        by: float
        """Factor on every channel."""
        shift: Annotated[float, Field(description="Added to every channel.")] = 0.0
        undescribed: int = 0
        single: Annotated[Literal["one"], ValueDescriptions({})] = "one"

    definition = json_schema()["$defs"]["Scaled"]
    fields = definition["properties"]
    assert fields["by"]["description"] == "Factor on every channel."
    assert fields["shift"]["description"] == "Added to every channel."
    assert "description" not in fields["undescribed"]
    assert "description" not in definition


def test_a_class_without_source_has_no_descriptions(slots):
    namespace: dict[str, Any] = {
        "Component": Component,
        "Literal": Literal,
        "register": register,
        "__name__": "nowhere",
    }
    exec(
        '@register("norm")\nclass Odd(Component):\n    kind: Literal["odd"] = "odd"\n    by: int = 1',
        namespace,
    )
    assert field_descriptions(namespace["Odd"]) == {}
    assert json_schema()["$defs"]["Odd"]["properties"]["by"] == {"default": 1, "type": "integer"}
