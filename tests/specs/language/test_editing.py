"""Edits of texts: the value is there, and the rest of the text is as it was."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specs.base.errors import SpecError, SpecPath
from specs.language.editing import renamed, spans, with_value, without
from specs.language.preset_files import PRESETS, preset_names
from specs.language.reading import read_text

TEXT = """\
# A comment.
name: a  # the name
position: {kind: learned}
decoder:
  layers: 12
  # Between.
  block:
    norm: {kind: layer_norm, eps: 1.0e-5}  # a norm
    list: [1, 2, 3]

head:
  kind: none
# The end.
"""


def data_of(text: str) -> Any:
    return read_text(text, "test").data


def changed_lines(before: str, after: str) -> list[str]:
    old = before.splitlines()
    return [line for line in after.splitlines() if line not in old]


@pytest.mark.parametrize(
    ("path", "value", "lines"),
    [
        (("name",), "b", ["name: b  # the name"]),
        (("position", "kind"), "rope", ["position: {kind: rope}"]),
        (("position", "theta"), 1e6, ["position: {kind: learned, theta: 1000000.0}"]),
        (("decoder", "layers"), 24, ["  layers: 24"]),
        (("decoder", "block", "norm"), {"kind": "rms_norm"}, ["    norm: {kind: rms_norm}  # a norm"]),
        (("decoder", "block", "list", 1), 9, ["    list: [1, 9, 3]"]),
        (("decoder", "block", "dropout"), 0.1, ["    dropout: 0.1"]),
        (("d_model",), 64, ["d_model: 64"]),
        (("embedding", "norm", "kind"), "rms_norm", ["embedding: {norm: {kind: rms_norm}}"]),
        (("head", "bias"), True, ["  bias: true"]),
        (("head",), {"kind": "none"}, ["head: {kind: none}"]),
        (("name", "kind"), "x", ["name: {kind: x}  # the name"]),
    ],
)
def test_a_value_changes_its_line_alone(path: SpecPath, value: Any, lines: list[str]) -> None:
    edited = with_value(TEXT, path, value)
    assert changed_lines(TEXT, edited) == lines
    assert edited.count("#") == TEXT.count("#")


def test_a_key_of_the_whole_spec_goes_where_the_order_says() -> None:
    edited = with_value(TEXT, ("d_model",), 64, ["name", "d_model", "position", "decoder"])
    assert edited.splitlines()[1:4] == ["name: a  # the name", "d_model: 64", "position: {kind: learned}"]


def test_a_new_kind_drops_the_keys_that_it_does_not_take() -> None:
    edited = with_value(TEXT, ("decoder", "block", "norm", "kind"), "none")
    assert "norm: {kind: none}  # a norm" in edited


def test_keys_are_removed_and_renamed() -> None:
    assert changed_lines(TEXT, without(TEXT, ("decoder", "block", "norm", "eps"))) == [
        "    norm: {kind: layer_norm}  # a norm"
    ]
    assert "position" not in without(TEXT, ("position", "kind"))
    assert data_of(without(TEXT, ("decoder", "layers")))["decoder"].keys() == {"block"}
    assert changed_lines(TEXT, renamed(TEXT, ("decoder", "layers"), "depth")) == ["  depth: 12"]
    assert renamed(TEXT, ("decoder", "layers"), "block") == TEXT


def test_a_text_that_cannot_be_edited_in_place_is_written_anew() -> None:
    shared = "a: &x {kind: one}\nb: *x\n"
    assert data_of(with_value(shared, ("b", "kind"), "two")) == {"a": {"kind": "one"}, "b": {"kind": "two"}}
    folded = "a: >\n  long\n  text\nb: 1\n"
    assert data_of(with_value(folded, ("a",), "short")) == {"a": "short", "b": 1}
    assert data_of(with_value("a:\n- b: 1\n- c: 2\n", ("a", 0, "b"), 3)) == {"a": [{"b": 3}, {"c": 2}]}
    assert data_of(with_value("a:\nb: 1\n", ("a",), 3)) == {"a": 3, "b": 1}
    assert data_of(with_value("a: 1\n", ("b", "c", "d"), 3)) == {"a": 1, "b": {"c": {"d": 3}}}


def test_lines_of_keys_are_known() -> None:
    lines = spans(TEXT)
    assert lines["decoder",] == (4, 9)
    assert lines["decoder", "block"] == (7, 9)
    assert lines["decoder", "block", "norm", "eps"] == (8, 8)
    assert lines["head",] == (11, 12)
    assert spans("a: [") == {}


def test_wrong_yaml_is_refused() -> None:
    for edit in (lambda text: with_value(text, ("a",), 1), lambda text: without(text, ("a",))):
        with pytest.raises(SpecError):
            edit("a: [")


def paths(data: Any, path: SpecPath = ()) -> list[SpecPath]:
    children = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(inner for key, value in children for inner in paths(value, (*path, key)))]


def expected(data: Any, path: SpecPath, value: Any) -> Any:
    wanted = copy.deepcopy(data)
    outer = wanted
    for key in path[:-1]:
        outer = outer[key]
    outer[path[-1]] = value
    return wanted


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_value_of_any_preset_can_be_set_and_removed(data: st.DataObject) -> None:
    text = (PRESETS / f"{data.draw(st.sampled_from(preset_names()))}.yaml").read_text("utf-8")
    before = data_of(text)
    path = data.draw(st.sampled_from([path for path in paths(before) if path and path[-1] != "kind"]))
    value = data.draw(st.sampled_from([7, 0.5, True, None, "a: b", {"kind": "x"}, [1, 2], "#", ""]))
    edited = with_value(text, path, value)
    assert data_of(edited) == expected(before, path, value)
    if "*" not in text:  # an alias stands for one line
        assert len(spans(text)) == len(paths(before)) - 1
    if isinstance(path[-1], str):
        removed = data_of(without(text, path))
        for key in path[:-1]:
            removed = removed.get(key, {}) if isinstance(removed, dict) else {}
        assert path[-1] not in removed
