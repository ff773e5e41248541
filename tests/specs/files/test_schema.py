"""The JSON Schema: it takes what the language takes, and catches what an editor can catch."""

import copy
import json
import os
import time
from typing import Annotated, Literal

import pytest

import specs
import specs.base.registry
from specs.base.base import Component, PositiveFloat
from specs.base.errors import SpecError
from specs.base.registry import register
from specs.files import stored_schema
from specs.files.schema import json_schema
from specs.files.stored_schema import spec_schema
from specs.forms.resolved import resolved
from specs.language.assignment import parse_assignment
from specs.language.document import Document
from specs.language.load import load
from specs.language.merging import merge as merge_documents
from specs.language.preset_files import PRESETS, preset_names
from specs.language.reading import read_text
from specs.language.spec_file import read_file
from specs.language.validation import validate
from tests.json_schemas import validator_of
from tests.specs import digests
from tests.thinned import one_in


@pytest.fixture(scope="module")
def schema():
    return json_schema()


@pytest.fixture(scope="module")
def validator(schema):
    return validator_of(schema)


def changed(name, assignment):
    """A preset's resolved data with one assignment laid over it, unvalidated."""
    base = Document(resolved(load(name)))
    return merge_documents(base, parse_assignment(assignment), lambda stated, kind: {}).data


@one_in(16)
@pytest.mark.parametrize("name", preset_names())
def test_it_accepts_every_preset_as_written_and_as_resolved(validator, name):
    validator.validate(read_file(PRESETS / f"{name}.yaml").data)
    validator.validate(resolved(load(name)))


@pytest.mark.parametrize(
    "assignment",
    [
        "d_modle=768", "decoder.block.attention.headz=12", "embedding.norm={kind: layer_norm, epz: 1.0e-5}",
        "position.kind=ropee", "position={theta: 10000.0}", "decoder.block.feed_forward.activation=gelu_new",
        "decoder.block.attention.bias={query: true}", "d_model=-768", "d_model=wide", "decoder.layers=0",
        "decoder.layers=[]", "decoder.layers=[{uze: a}]", "decoder.blocks={small: {attention: {headz: 6}}}",
        "embedding={kind: patches}", "embedding={image_size: 8, patch_size: 2}",
        "embedding={kind: spectrogram, mel_bins: 4, width: 8}",
    ],
)  # fmt: skip
def test_the_schema_rejects_invalid_specs(validator, assignment):
    data = changed("gpt2", assignment)
    assert not validator.is_valid(data)
    with pytest.raises(SpecError):
        validate(Document(data))


@pytest.mark.parametrize(
    "assignment",
    [
        "position={kind: rope, scaling: {kind: linear, factor: 2}}",
        "decoder.layers=[{repeat: 2}, {pattern: [{use: small}, {repeat: 3}], repeat: 2}]",
        "decoder.blocks={small: {attention: {heads: 6}}}",
        "decoder.block.attention.bias={query: true, key: false, value: true, output: true}",
        "embedding.norm=null", "embedding.scale=sqrt_d_model", "embedding.kind=tokens",
        "decoder.embedding={projection: {place: first}}",
    ],
)  # fmt: skip
def test_the_schema_accepts_valid_specs(validator, assignment):
    validator.validate(changed("gpt2", assignment))


@pytest.mark.parametrize(
    "text",
    [
        "extends: gpt2", "extends: gpt2\ndecoder: {block: {norm: {kind: rms_norm}}}",
        "extends: gpt2\ndecoder: {block: {attention: {heads: 6}}}", "extends: gpt2\nposition: {theta: 1.0e6}",
    ],
)  # fmt: skip
def test_a_spec_that_extends_states_only_changes(validator, text):
    validator.validate(read_text(text, "a.yaml").data)


@pytest.mark.parametrize(
    "text", ["extends: 3", "extends: gpt2\nhead: {tied: true}", "extends: gpt2\nlayers: 3"]
)
def test_a_spec_that_extends_is_still_checked(validator, text):
    assert not validator.is_valid(read_text(text, "a.yaml").data)


def test_a_whole_spec_must_be_whole(validator):
    errors = [error.message for error in validator.iter_errors({"name": "a", "architecture": "decoder"})]
    assert any("'d_model' is a required property" in error for error in errors)


def test_the_schema_is_the_recorded_one():
    text = digests.schema_text()
    if digests.digest(text) != digests.SCHEMA.read_text().strip():
        pytest.fail(digests.schema_explanation(text))


def test_a_schema_that_is_stored_is_printed_unless_plugins_add_kinds(schema, tmp_path, monkeypatch):
    assert spec_schema() == schema
    monkeypatch.setattr(stored_schema, "STORED", tmp_path / "stored.json")
    stored_schema.STORED.write_text('{"title": "stored"}')
    assert spec_schema() == {"title": "stored"}
    monkeypatch.setattr(stored_schema, "plugin_entries", lambda: ["a plugin"])
    assert spec_schema() == schema


def test_a_checkout_stores_the_schema_until_a_source_changes(schema, tmp_path, monkeypatch):
    source = tmp_path / "presets" / "gpt2.yaml"
    source.parent.mkdir()
    source.write_text("")
    monkeypatch.setattr(stored_schema, "SOURCES", tmp_path)
    since = time.time_ns() + 60 * 10**9  # the time that a busy machine takes to write the schema
    monkeypatch.setattr(specs, "READ_SINCE", since)
    assert spec_schema() == schema
    (stored,) = (tmp_path / "__pycache__").iterdir()
    assert json.loads(stored.read_text("utf-8")) == schema
    monkeypatch.setattr(stored_schema, "_generated", lambda: {"title": "generated"})
    assert spec_schema() == schema
    later = since + 10**9
    os.utime(source, ns=(later, later))
    assert spec_schema() == {"title": "generated"}
    assert spec_schema() == {"title": "generated"}
    os.utime(source.parent, ns=(later, later))
    os.utime(source)
    monkeypatch.setattr(stored_schema, "_generated", lambda: {"title": "with another preset"})
    assert spec_schema() == {"title": "with another preset"}


def test_a_schema_with_kinds_of_others_is_not_stored(schema, tmp_path, monkeypatch):
    monkeypatch.setattr(stored_schema, "SOURCES", tmp_path)
    monkeypatch.setattr(stored_schema, "_is_built_in", lambda: False)
    assert spec_schema() == schema
    assert not (tmp_path / "__pycache__").exists()


def test_editors_are_given_every_kind_and_its_docstring(schema):
    definitions = schema["$defs"]
    for slot in specs.base.registry.slots():
        assert len(definitions[slot]["oneOf"]) == len(specs.base.registry.kinds(slot))
    assert definitions["Rope"]["description"].startswith(
        "Rotary embedding of queries and keys (Su et al., 2021)."
    )
    assert definitions["Rope"]["properties"]["kind"]["const"] == "rope"
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_a_plugin_s_kind_is_in_it(monkeypatch):
    monkeypatch.setattr(specs.base.registry, "_slots", copy.deepcopy(specs.base.registry._slots))

    @register("norm")
    class Scaled(Component):
        """A number for every channel."""

        kind: Literal["scaled"] = "scaled"
        by: Annotated[PositiveFloat, "required"]

    validator = validator_of(json_schema())
    validator.validate(changed("gpt2", "decoder.block.norm={kind: scaled, by: 2.0}"))
    assert not validator.is_valid(changed("gpt2", "decoder.block.norm={kind: scaled}"))
    assert not validator.is_valid(changed("gpt2", "decoder.block.norm={kind: scaled, by: 2.0, bye: 1}"))
