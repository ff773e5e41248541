"""Reading, merging, assigning and writing specs: values, positions, bounds, and every message."""

import math
import re
import subprocess
import sys
from textwrap import dedent

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import specs.language.reading
from specs.base.errors import Mark, SpecError
from specs.language.assignment import parse_assignment
from specs.language.document import MAX_BYTES, MAX_DEPTH, Document
from specs.language.merging import merge
from specs.language.reading import read_text
from specs.language.spec_file import read_file
from specs.language.writing import dump
from tests.thinned import one_in


@pytest.fixture(params=["CSafeLoader", "SafeLoader"])
def loader(request, monkeypatch):
    """Runs a test with libyaml and without it."""
    if not hasattr(yaml, request.param):
        pytest.skip("no libyaml")
    monkeypatch.setattr(specs.language.reading, "LOADER", getattr(yaml, request.param))


def problem_of(call, *arguments):
    with pytest.raises(SpecError) as caught:
        call(*arguments)
    assert len(caught.value.problems) == 1
    problem = caught.value.problems[0]
    assert problem.remedy, "an error must have a remedy"
    assert problem.mark is not None
    return problem


def place(problem):
    return problem.mark.line, problem.mark.column


def value_of(text):
    return read_text(f"x: {text}\n", "x.yaml").data["x"]


def nothing_held(stated, kind):
    return {}


def assign(base, assignment, held):
    return merge(base, parse_assignment(assignment), held)


# ---------------------------------------------------------------------------------------------------- scalars


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5),
        ("1e-12", 1e-12),
        ("1.0e-05", 1e-5),
        ("1.", 1.0),
        (".5", 0.5),
        ("-2.5E+3", -2500.0),
        (".inf", math.inf),
        ("+.INF", math.inf),
        ("-.Inf", -math.inf),
        ("0", 0),
        ("-12", -12),
        ("+12", 12),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("Off", "Off"),
        ("1_000", "1_000"),
        ("0b1", "0b1"),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("tRUE", "tRUE"),
        ("'1'", "1"),
        ('"null"', "null"),
        ("'no'", "no"),
        ("=", "="),
        ("inf", "inf"),
        (".", "."),
        ("1e", "1e"),
        ("[~]", [None]),
        ("٣", "٣"),
        ("!!str 12", "12"),
        ("!!int '12'", 12),
        ("!!float 3", 3.0),
        ("!!bool 'true'", True),
        ("!!null ''", None),
        ("[1, {a: b}]", [1, {"a": "b"}]),
        ("|\n  12\n", "12\n"),
        (">-\n  true\n", "true"),
    ],
)
def test_scalars_follow_the_yaml_1_2_core_schema(text, value, loader):
    result = value_of(text)
    assert result == value
    assert type(result) is type(value)


def test_nan_is_read(loader):
    assert math.isnan(value_of(".nan"))


# -------------------------------------------------------------------------------------------------- positions

TEXT = dedent("""\
    # a comment
    name: gpt2
    decoder:
      layers:
        - {use: a, repeat: 2}
        - use: b
    """)


def test_every_value_and_key_has_a_position(loader):
    document = read_text(TEXT, "gpt2.yaml")
    assert document.data == {"name": "gpt2", "decoder": {"layers": [{"use": "a", "repeat": 2}, {"use": "b"}]}}
    assert str(document.mark_of(())) == "gpt2.yaml:2:1"
    assert str(document.mark_of(("name",))) == "gpt2.yaml:2:7"
    assert str(document.key_mark_of(("name",))) == "gpt2.yaml:2:1"
    assert str(document.mark_of(("decoder", "layers", 0, "repeat"))) == "gpt2.yaml:5:24"
    assert str(document.key_mark_of(("decoder", "layers", 0, "repeat"))) == "gpt2.yaml:5:16"
    assert str(document.mark_of(("decoder", "layers", 1))) == "gpt2.yaml:6:7"
    assert str(document.key_mark_of(("decoder", "layers", 1))) == "gpt2.yaml:6:7"


def test_a_missing_value_has_the_position_of_its_parent():
    document = read_text(TEXT, "gpt2.yaml")
    assert document.mark_of(("name", "x", 3)) == document.mark_of(("name",))
    assert document.key_mark_of(("vocab_size",)) == document.mark_of(())
    assert Document({"a": 1}).mark_of(("a",)) is None


def test_columns_count_characters(loader):
    assert str(read_text("{ключ: 1}", "x").mark_of(("ключ",))) == "x:1:8"


# ---------------------------------------------------------------------------------------------------- aliases


def test_aliases_are_expanded_and_marked_where_they_are_used(loader):
    document = read_text("a: &x {b: &y 1}\nc: *x\nd: *y\n", "x.yaml")
    assert document.data == {"a": {"b": 1}, "c": {"b": 1}, "d": 1}
    assert document.data["a"] is not document.data["c"]
    assert str(document.mark_of(("c",))) == "x.yaml:2:4"
    assert str(document.mark_of(("c", "b"))) == "x.yaml:1:11"
    assert str(document.mark_of(("d",))) == "x.yaml:3:4"


def test_an_anchor_defined_again_holds_from_there_on(loader):
    data = read_text("a: &p {q: &x 1, r: *x}\nb: &x 2\nc: *p\nd: *x", "x").data
    assert data["c"] == {"q": 1, "r": 1}
    assert data["d"] == 2


def test_an_alias_can_be_a_key(loader):
    assert read_text("a: &x name\n*x : 1", "x").data == {"a": "name", "name": 1}
    assert (
        problem_of(read_text, "a: &x 2\n*x : 1", "x").rule == "a key must be a string, but this is an integer"
    )


def test_billion_laughs(loader):
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    problem = problem_of(read_text, "\n".join(lines), "bomb.yaml")
    assert problem.rule == "a spec must have at most 20000 values, counting each use of an alias in full"
    assert "`repeat`" in problem.remedy


@one_in(2)
def test_too_many_values(loader):
    problem = problem_of(read_text, "a: [" + "1," * 30_000 + "]", "x.yaml")
    assert problem.rule.startswith("a spec must have at most 20000 values")
    problem_of(read_text, "a: [" + "1," * 60_000 + "]", "x.yaml")


def test_aliases_cannot_pile_up_depth():
    lines = ["a0: &a0 [1]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 100)]
    assert (
        problem_of(read_text, "\n".join(lines), "x").rule
        == "lists and mappings must be nested at most 64 deep"
    )


@pytest.mark.parametrize(
    "text", ["a: &x [*x]", "a: &x {b: {c: *x}}", "&x {a: *x}", "a: &x\n  - b: *x", "a: &x {*x : 1}"]
)
def test_recursive_aliases_are_refused_by_name(text, loader):
    assert problem_of(read_text, text, "x").rule == "a value must not contain itself, but *x is within &x"


def test_unknown_aliases_are_refused_by_name(loader):
    problem = problem_of(read_text, "block: &attn 1\nb: *attm", "x.yaml")
    assert problem.rule == "an alias must name an anchor above it, but &attm is not defined"
    assert problem.remedy == "Did you mean 'attn'?"
    assert place(problem) == (2, 4)
    assert problem_of(read_text, "b: *x", "x").remedy == "Write &x before the value that it names."


# ----------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("text", "line_column", "rule"),
    [
        ("a: 1\nb: 2\na: 3", (3, 1), "a mapping must have each key once, but this one is on lines 1 and 3"),
        ("x: {a: 1, a: 2}", (1, 11), "a mapping must have each key once, but this one is on lines 1 and 1"),
        ("a: 1\n2: b", (2, 1), "a key must be a string, but this is an integer"),
        ("true: b", (1, 1), "a key must be a string, but this is a boolean"),
        ("~: b", (1, 1), "a key must be a string, but this is null"),
        ("1.5: b", (1, 1), "a key must be a string, but this is a number"),
        ("? [a, b]\n: c", (1, 3), "a key must be a string, but this is a list or mapping"),
        ("? {a: b}\n: c", (1, 3), "a key must be a string, but this is a list or mapping"),
        (f"{'k' * 101}: 1", (1, 1), "a key must have at most 100 characters"),
        ("a: &x {b: 1}\nc:\n  <<: *x", (3, 3), "a mapping must not use the merge key '<<'"),
        ("a: 1\n---\nb: 2", (2, 1), "a file must hold one document"),
        ("- a\n- b", (1, 1), "a spec must be a mapping, but this is a list"),
        ("\n  gpt2", (2, 3), "a spec must be a mapping, but this is a string"),
        ("12", (1, 1), "a spec must be a mapping, but this is an integer"),
        ("", (None, None), "a spec must not be empty"),
        ("# only a comment\n", (None, None), "a spec must not be empty"),
        ("---\n...\n", (None, None), "a spec must not be empty"),
        ("a: 1\nb: x\x07", (2, 5), "a spec must not contain the control character U+0007"),
        ("a: \ud800", (1, 4), "a spec must not contain the control character U+D800"),
        (
            "a: !!python/name:os.system x",
            (1, 4),
            "a tag must be !!str, !!int, !!float, !!bool or !!null, not !!python/name:os.system",
        ),
        ("a: !mine x", (1, 4), "a tag must be !!str, !!int, !!float, !!bool or !!null, not !mine"),
        ("a: !!set {x}", (1, 4), "a tag must be !!str, !!int, !!float, !!bool or !!null, not !!set"),
        ("a: !!int b", (1, 4), "a value tagged !!int must be an integer"),
        ("a: !!bool 1", (1, 4), "a value tagged !!bool must be a boolean"),
        ("a: !!float x", (1, 4), "a value tagged !!float must be a number"),
        ("a: !!null x", (1, 4), "a value tagged !!null must be null"),
        ("a: " + "9" * 101, (1, 4), "an integer must have at most 100 digits"),
        ("a: 0x" + "f" * 5000, (1, 4), "an integer must have at most 100 digits"),
        ("a: 0x" + "f" * 90, (1, 4), "an integer must have at most 100 digits"),
        ("a:\n\tb: 1", (2, 1), "a line must not be indented by a tab"),
        ("\ta: 1", (1, 1), "a line must not be indented by a tab"),
        ("a: 1\n\tb: 2", (2, 1), "a line must not be indented by a tab"),
        ("a: @x", (1, 4), "an unquoted value must not start with this character"),
        ("a: b: c", (1, 5), "a ':' must follow a key, one key to a line"),
        ("a: - b", (1, 4), "a list written with '-' must start on its own line"),
        ("a: {b: 1]", (1, 9), "a mapping in braces must have commas between its keys and a '}' at its end"),
        ("a: 'x", (1, 6), "a quoted string must end with the quote it starts with"),
        ("a: ]", (1, 4), "a value is missing"),
        ("{a: 1}\nb: 2", (2, 1), "a file must hold one mapping and nothing after it"),
    ],
)  # fmt: skip
def test_errors_are_located(text, line_column, rule, loader):
    problem = problem_of(read_text, text, "x.yaml")
    assert problem.rule == rule
    assert place(problem) == line_column
    assert problem.mark.source == "x.yaml"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('a: "\\q"', "a string in double quotes must use escapes that YAML knows"),
        ("a:\n  b: 1\n c: 2", "the keys of a mapping must start in one column, one key to a line"),
        ('a: "x" y', "the keys of a mapping must start in one column, one key to a line"),
        ("- a\nb: 1", "the items of a list must start with '-', in one column"),
        ("a:\n  ? b\n c", "the keys of a mapping must start in one column, one key to a line"),
        ("a: 1\nb\n", "a key must be followed by ': '"),
        ("a: [1, 2", "a list in brackets must have commas between its items and a ']' at its end"),
        ("a: {b: 1", "a mapping in braces must have commas between its keys and a '}' at its end"),
        ("%YAML 3.0\n---\na: 1", "the text must be valid YAML: found incompatible YAML document"),
    ],
)
@pytest.mark.skipif(not hasattr(yaml, "CSafeLoader"), reason="the wording of libyaml")
def test_syntax_errors_use_the_terms_of_the_language(text, rule):
    assert problem_of(read_text, text, "x.yaml").rule == rule


def test_a_misaligned_line_without_libyaml(monkeypatch):
    monkeypatch.setattr(specs.language.reading, "LOADER", yaml.SafeLoader)
    rule = "the lines of a mapping or list must start in one column"
    assert problem_of(read_text, "a:\n  b: 1\n c: 2", "x.yaml").rule == rule


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("on: 1\n1: b", "Put it in quotes: '1'."),
        ("a: {<<: {}}", "Use `extends`, or named `blocks`."),
        ("a: 1\nb: [1,\n  2\nc: 3", "It starts at x.yaml:2:4."),
        ("a: 1\nb: 'x\nc: 3", "It starts at x.yaml:2:4."),
        ("a:\n\tb: 1", "Indent with spaces."),
        ("- a", "Start with a key and its value, such as `name: my-model`."),
        ("a: 1\na: 1", "Remove one of the two."),
    ],
)
def test_remedies(text, remedy, loader):
    assert problem_of(read_text, text, "x.yaml").remedy == remedy


def test_a_quoted_merge_key_is_a_key(loader):
    assert read_text("'<<': 1", "x").data == {"<<": 1}


def test_an_error_knows_its_path_and_value():
    problem = problem_of(read_text, "decoder:\n  layers: [1, {a: 1, a: 2}]", "x.yaml")
    assert problem.path == ("decoder", "layers", 1, "a")
    assert problem_of(read_text, "a:\n  3: x", "x.yaml").value == 3


# ----------------------------------------------------------------------------------------------------- bounds


@pytest.mark.parametrize("text", ["[" * 100_000, "a: " + "{a: " * 100_000, "- " * 100_000, "[{a: " * 100_000])
def test_deep_nesting_is_refused_at_once(text, loader):
    assert problem_of(read_text, text, "x.yaml").rule == "lists and mappings must be nested at most 64 deep"


def test_deep_block_nesting_is_refused(loader):
    text = "".join(f"{' ' * n}a:\n" for n in range(200))
    assert problem_of(read_text, text, "x.yaml").rule == "lists and mappings must be nested at most 64 deep"


def test_the_greatest_depth_is_read_and_written(loader):
    text = "a: " + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    data = read_text(text, "x").data
    assert read_text(dump(data), "x").data == data
    problem_of(read_text, text.replace("[]", "[[]]"), "x")


def test_a_large_text_is_refused():
    rule = "a spec must be at most 1,000,000 bytes"
    assert problem_of(read_text, "a" * (MAX_BYTES + 1), "x.yaml").rule == rule


# ------------------------------------------------------------------------------------------------------ files


def test_a_file_is_read_under_its_own_name(tmp_path):
    path = tmp_path / "gpt2.yaml"
    path.write_text("name: gpt2 über\r\nd: 1\r\n", encoding="utf-8", newline="")
    assert read_file(path).data == {"name": "gpt2 über", "d": 1}
    assert read_file(str(path)).mark_of(("d",)) == Mark(str(path), 2, 4)


@pytest.mark.parametrize(
    ("content", "line_column", "rule"),
    [
        (b"a: 1\nb: \xff\n", (2, 4), "a spec must be UTF-8 text, but it contains the byte 0xff"),
        ("a: é".encode("latin-1"), (1, 4), "a spec must be UTF-8 text, but it contains the byte 0xe9"),
        ("a: 1".encode("utf-16"), (1, 1), "a spec must be UTF-8 text, but it contains UTF-16"),
        ("a: 1\nb\n".encode("utf-8-sig"), (2, 1), "a key must be followed by ': '"),
        ("a: é".encode("utf-8-sig") + b"\xff", (1, 5), "a spec must be UTF-8 text, but it contains the byte 0xff"),
        (b"a: " + b"x" * MAX_BYTES, (None, None), "a spec must be at most 1,000,000 bytes"),
        (b"", (None, None), "a spec must not be empty"),
    ],
)  # fmt: skip
def test_errors_in_a_file(tmp_path, content, line_column, rule):
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    problem = problem_of(read_file, path)
    assert problem.rule == rule
    assert place(problem) == line_column
    assert problem.mark.source == str(path)


def test_a_missing_file_suggests_its_neighbour(tmp_path):
    assert problem_of(read_file, tmp_path / "x" / "gpt2.yaml").remedy == "Check the path."
    (tmp_path / "gpt2.yaml").touch()
    problem = problem_of(read_file, tmp_path / "gpt-2.yaml")
    assert problem.rule == "the file must exist"
    assert problem.remedy == "Did you mean 'gpt2.yaml'?"
    assert problem_of(read_file, tmp_path / "gpt2.yml").remedy == "Did you mean 'gpt2.yaml'?"


def test_a_suffix_alone_is_no_likeness(tmp_path):
    (tmp_path / "e.yaml").touch()
    assert problem_of(read_file, tmp_path / "nothere.yaml").remedy == "Choose from: e.yaml."


def test_a_directory(tmp_path):
    assert problem_of(read_file, tmp_path).remedy == "Pass a file in it: my-model.yaml."
    (tmp_path / "gpt2.yaml").touch()
    problem = problem_of(read_file, tmp_path)
    assert problem.rule == "a spec must be a file, but this is a directory"
    assert problem.remedy == "Pass a file in it: gpt2.yaml."


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError

    monkeypatch.setattr("os.open", refuse)
    rule = "the file must be readable, but permission is denied"
    assert problem_of(read_file, tmp_path / "x.yaml").rule == rule


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "x.yaml/y.yaml"])
def test_a_path_that_is_none(tmp_path, name):
    (tmp_path / "x.yaml").touch()
    assert problem_of(read_file, f"{tmp_path}/{name}").rule.startswith("the file must be readable: ")


# ------------------------------------------------------------------------------------------------------ merge

KEYS = {"learned": frozenset({"kind", "size"}), "rope": frozenset({"kind", "theta", "scaling"})}


def held(stated, kind):
    return {key: value for key, value in stated.items() if key in KEYS.get(kind, ())}


@pytest.mark.parametrize(
    ("base", "override", "merged"),
    [
        ("{a: 1, b: 2}", "{b: 3, c: 4}", "{a: 1, b: 3, c: 4}"),
        ("{a: {b: 1, c: 2}}", "{a: {c: 3}}", "{a: {b: 1, c: 3}}"),
        ("{a: [1, 2]}", "{a: [3]}", "{a: [3]}"),
        ("{a: {b: 1}}", "{a: null}", "{a: null}"),
        ("{a: {b: 1}}", "{a: 2}", "{a: 2}"),
        ("{a: 2}", "{a: {b: 1}}", "{a: {b: 1}}"),
        ("{a: null}", "{a: {b: 1}}", "{a: {b: 1}}"),
        ("{p: {kind: learned, size: 3}}", "{p: {size: 4}}", "{p: {kind: learned, size: 4}}"),
        ("{p: {kind: learned, size: 3}}", "{p: {kind: learned}}", "{p: {kind: learned, size: 3}}"),
        ("{p: {kind: learned, size: 3}}", "{p: {kind: rope}}", "{p: {kind: rope}}"),
        ("{p: {kind: rope, theta: 1}}", "{p: {kind: rope, scaling: 2}}", "{p: {kind: rope, theta: 1, scaling: 2}}"),
        ("{p: {kind: learned, size: 3, theta: 1}}", "{p: {kind: rope, x: 1}}", "{p: {kind: rope, theta: 1, x: 1}}"),
        ("{p: {kind: learned, size: 3}}", "{p: {kind: mine, x: 1}}", "{p: {kind: mine, x: 1}}"),
        ("{p: {kind: 1, size: 3}}", "{p: {kind: rope}}", "{p: {kind: rope, size: 3}}"),
        ("{kind: learned, size: 3}", "{kind: rope, theta: 1}", "{kind: rope, theta: 1}"),
    ],
)  # fmt: skip
def test_merge(base, override, merged):
    result = merge(read_text(base, "b"), read_text(override, "o"), held)
    assert result.data == read_text(merged, "m").data


def test_merged_values_keep_the_marks_of_where_they_came_from():
    base = read_text("a: {x: 1, y: 2}\nb: [1]\nc: {d: 1}\np: {kind: learned, size: 1}", "base.yaml")
    override = read_text("# mine\na: {y: 3, z: {w: 4}}\nb: [5, 6]\np: {kind: rope}", "mine.yaml")
    merged = merge(base, override, held)
    for path, mark in {
        (): "mine.yaml:2:1",
        ("a",): "mine.yaml:2:4",
        ("a", "x"): "base.yaml:1:8",
        ("a", "y"): "mine.yaml:2:8",
        ("a", "z", "w"): "mine.yaml:2:18",
        ("b",): "mine.yaml:3:4",
        ("b", 1): "mine.yaml:3:8",
        ("c", "d"): "base.yaml:3:8",
        ("p",): "mine.yaml:4:4",
    }.items():
        assert str(merged.mark_of(path)) == mark
    assert str(merged.key_mark_of(("a", "x"))) == "base.yaml:1:5"
    assert str(merged.key_mark_of(("a", "y"))) == "mine.yaml:2:5"
    assert ("p", "size") not in merged.marks


def test_merge_shares_nothing_with_its_inputs():
    base, override = read_text("a: {b: [1]}", "b"), read_text("c: [{d: 1}]", "o")
    merged = merge(base, override, nothing_held)
    merged.data["a"]["b"].append(2)
    merged.data["c"][0]["d"] = 2
    assert base.data == {"a": {"b": [1]}}
    assert override.data == {"c": [{"d": 1}]}


# ------------------------------------------------------------------------------------------------- assignment


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("16", 16),
        ("1e-5", 1e-5),
        ("null", None),
        ("true", True),
        ("no", "no"),
        ("[1, 2]", [1, 2]),
        ("[]", []),
        ("{kind: rope, scaling: {factor: 2}}", {"kind": "rope", "scaling": {"factor": 2}}),
        ("gelu_tanh", "gelu_tanh"),
        ("'a, b'", "a, b"),
        (" 3 ", 3),
        ("''", ""),
        ("a=b", "a=b"),
        ("Hello world", "Hello world"),
        ("~", None),
    ],
)
def test_assigned_values_are_yaml(text, value):
    override = parse_assignment(f"decoder.block.x={text}")
    assert override.data == {"decoder": {"block": {"x": value}}}
    assert set(override.marks.values()) == {Mark.of_option("assignments", f"decoder.block.x={text}")}
    assert set(override.key_marks.values()) <= set(override.marks.values())
    assert ("decoder", "block", "x") in override.key_marks


BASE = read_text(
    "name: t\nposition: {kind: learned, size: 3}\nlayers: [{use: a}, {use: b, repeat: 2}]\n", "t.yaml"
)


@pytest.mark.parametrize(
    ("assignment", "path", "value"),
    [
        ("name=x", ("name",), "x"),
        ("name.sub=1", ("name",), {"sub": 1}),
        ("new.sub=1", ("new",), {"sub": 1}),
        ("position.size=4", ("position",), {"kind": "learned", "size": 4}),
        ("position.kind=rope", ("position",), {"kind": "rope"}),
        ("position={kind: rope}", ("position",), {"kind": "rope"}),
        ("layers[1].repeat=3", ("layers",), [{"use": "a"}, {"use": "b", "repeat": 3}]),
        ("layers.1.repeat=3", ("layers",), [{"use": "a"}, {"use": "b", "repeat": 3}]),
        ("layers[0]=null", ("layers",), [None, {"use": "b", "repeat": 2}]),
        ("layers[0].use=[1]", ("layers",), [{"use": [1]}, {"use": "b", "repeat": 2}]),
        (" layers = 3", ("layers",), 3),
    ],
)
def test_assign(assignment, path, value):
    data = assign(BASE, assignment, held).data
    assert data[path[0]] == value
    assert {k: v for k, v in data.items() if k != path[0]} == {
        k: v for k, v in BASE.data.items() if k != path[0]
    }


def test_an_assigned_list_element_can_be_assigned_within():
    once = assign(BASE, "layers[0].use=[[1, 2], 3]", nothing_held)
    assert assign(once, "layers[0].use[0][1]=5", nothing_held).data["layers"][0] == {"use": [[1, 5], 3]}


def test_an_assignment_marks_what_it_sets_and_nothing_else():
    result = assign(BASE, "layers[1].repeat=3", nothing_held)
    assert str(result.mark_of(("layers", 1, "repeat"))) == "assignments layers[1].repeat=3"
    for path in [(), ("layers",), ("layers", 1), ("layers", 1, "use"), ("layers", 0, "use")]:
        assert result.mark_of(path) == BASE.mark_of(path)
    changed = assign(BASE, "position.kind=rope", held)
    assert str(changed.mark_of(("position",))) == "assignments position.kind=rope"


@pytest.mark.parametrize(
    ("assignment", "rule", "remedy"),
    [
        ("layers", "an assignment must have an '=' between path and value", "Write it as in decoder.block"),
        ("=3", "a path must be names joined by dots, with indices in brackets", "Write it as in decoder"),
        ("a..b=3", "a path must be names joined by dots, with indices in brackets", "Write it as in decoder"),
        ("a.=3", "a path must be names joined by dots, with indices in brackets", "Write it as in decoder"),
        ("a[0]b=3", "a path must be names joined by dots, with indices in brackets", "Write it as in decoder"),
        ("a[x]=3", "a path must be names joined by dots, with indices in brackets", "Write it as in decoder"),
        ("a b=3", "a path must be names joined by dots, with indices in brackets", "Write it as in decoder"),
        ("a.\udc80=3", "a path must be names joined by dots, with indices in brackets", "Write it as in decoder"),
        (".a" * 70 + "=3", "a path must be names joined by dots, with indices in brackets", "Write it as in"),
        ("a" + ".a" * 70 + "=3", "a path must have at most 64 names of at most 100 characters", "Write it as in"),
        ("a" * 101 + "=3", "a path must have at most 64 names of at most 100 characters", "Write it as in"),
        ("a=", "an assignment must have a value after its '='", "Write null"),
        ("a=1, 2", "an assignment must have one value", "Put a list in brackets"),
        ("a=[1, 2", "a list in brackets must have commas between its items and a ']' at its end", "Close it."),
        ("a=@", "an unquoted value must not start with this character", "Put it in quotes."),
        ("a=*x", "an alias must name an anchor above it, but &x is not defined", "Write &x"),
        ("a={b: 1, b: 2}", "a mapping must have each key once", "Remove one"),
        ("a=\udc80", "a spec must not contain the control character U+DC80", "Remove the character"),
        ("a=" + "[" * 70, "lists and mappings must be nested at most 64 deep", "Close the brackets"),
        ("a.b=" + "[" * 63 + "]" * 63, "lists and mappings must be nested at most 64 deep", "Close the brackets"),
        (
            "layers[2].use=c",
            "an index must be in the range of layers, which has 2 elements",
            "Use an index from 0 to 1.",
        ),
        (
            "layers[-1].use=c",
            "an index must be in the range of layers, which has 2 elements",
            "Use an index from 0 to 1.",
        ),
        (
            "name[0]=c",
            "an index must select an element of a list, and name is a string",
            "Assign a value to name itself.",
        ),
        ("position[0]=c", "an index must select an element of a list, and position is a mapping", "Assign a value"),
        ("new[0]=c", "an index must select an element of a list, and new is not set", "Assign a value to new itself."),
        (
            "new.x[0]=c",
            "an index must select an element of a list, and new.x is not set",
            "Assign a value to new.x itself.",
        ),
        ("0=c", "an index must select an element of a list, and the spec is a mapping", "Start the path"),
    ],
)  # fmt: skip
def test_a_wrong_assignment_is_quoted(assignment, rule, remedy):
    problem = problem_of(assign, BASE, assignment, held)
    assert problem.rule == rule
    assert problem.remedy.startswith(remedy)
    assert problem.mark == Mark.of_option("assignments", assignment)


def test_an_index_into_an_empty_list():
    problem = problem_of(assign, Document({"a": []}), "a[0]=1", nothing_held)
    assert problem.remedy == "Assign a value to a itself."


# ------------------------------------------------------------------------------------------------------- dump


def test_dump_writes_specs_as_people_do():
    text = dedent("""\
        name: gpt2
        summary: GPT-2 small (Radford et al., 2019)
        d_model: 768
        position: {kind: learned}
        decoder:
          layers:
            - {use: local, repeat: 2}
            - use: global
              options: {}
              window:
                size: [1, 2]
                deep:
                  - [1]
                  - - [2]
          block:
            kind: pre_norm
            norm: {kind: layer_norm, eps: 1.0e-05}
            answer: "no"
            versions: {a: "1", b: "a, b", c: null}
        """)
    assert dump(read_text(text.replace("- - [2]", "- [[2]]"), "x").data) == text


def test_dump_keeps_within_a_hundred_columns():
    fits = {"a": {"b": "x" * 91}}
    assert dump(fits) == f"a: {{b: {'x' * 91}}}\n"
    assert dump({"a": {"b": "x" * 92}}) == f"a: {{b: {'x' * 92}}}\n"  # 100 columns
    assert dump({"a": {"b": "x" * 93}}) == f"a:\n  b: {'x' * 93}\n"


@pytest.mark.parametrize(
    "text",
    [
        "no", "Yes", "y", "off", "null", "~", "", "1", "1e5", "1_000", "0x1", "0o7", "12:30:45", "2024-01-01", ".5",
        "=", "<<", "a: b",
        "a #b",
        "- a", "[a", "{a", "a,b", "*a", "&a", "!a", "%a", "@a", "`a", "'a", '"a', "a\nb", " a", "a ", "\t", "\x00",
        "\x85", "\u2028", "\ufeff", "\U0001f600", "\\", "é", "---", "true", "?", ":", "a:", "|", ">",
    ],
)  # fmt: skip
def test_strings_stay_strings_under_yaml_1_1_and_1_2(text):
    data = {text or "k": text, "flow": {"k": text}, "list": [text, {"k": [text, {}]}]}
    written = dump(data)
    assert read_text(written, "x").data == data
    assert yaml.safe_load(written) == data


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e-5, "1.0e-05"),
        (1e16, "1.0e+16"),
        (0.1, "0.1"),
        (1.5e300, "1.5e+300"),
        (math.inf, ".inf"),
        (-math.inf, "-.inf"),
        (math.nan, ".nan"),
    ],
)
def test_floats_are_floats_under_yaml_1_1_and_1_2(value, text):
    written = dump({"x": value})
    assert written == f"x: {text}\n"
    for result in (read_text(written, "x").data["x"], yaml.safe_load(written)["x"]):
        assert result == value or math.isnan(value)
        assert type(result) is float


def test_dump_refuses_data_that_is_not_plain():
    with pytest.raises(TypeError, match="not plain data"):
        dump({"x": object()})
    assert dump({}) == "{}\n"


# ------------------------------------------------------------------------------------------------------- laws

texts = st.text(st.characters(codec="utf-8"), max_size=12)
scalars = st.none() | st.booleans() | st.integers(-(10**99), 10**99) | st.floats(allow_nan=False) | texts
words = st.sampled_from(
    ["kind", "no", "1", "1e5", "a,b", "rope", "~", "-", "x: y", "#", "0x1", "1_0", "=", "\n"]
)
plain = st.recursive(
    scalars | words,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(texts | words, children, max_size=4),
    max_leaves=12,
)
mappings = st.dictionaries(texts | words, plain, max_size=5)
documents = mappings.map(lambda data: read_text(dump(data), "x.yaml"))
yaml_like = st.text(st.sampled_from("ab1 \n\n::--[]{},'\"&*!|>#?%@\t.<~\\"), max_size=60)
quick = settings(deadline=None, max_examples=60)


@quick
@given(mappings)
def test_written_documents_read_back_equal(data):
    written = dump(data)
    for result in (read_text(written, "x").data, yaml.safe_load(written)):
        assert result == data
        assert repr(result) == repr(data)  # the order of keys, and 1 against 1.0 against True
    assert all(
        len(line) <= 100 for line in written.splitlines() if re.match(r" *(- )*[\w-]*:? ?[{\[].", line)
    )


@quick
@given(yaml_like | st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    try:
        document = read_text(text, "x.yaml")
    except SpecError:
        problem_of(read_text, text, "x.yaml").render()
    else:
        assert all(path in document.marks for path in paths(document.data))
        assert repr(read_text(dump(document.data), "x").data) == repr(document.data)


def paths(value, path=()):
    yield path
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        yield from paths(child, (*path, key))


@quick
@given(
    st.builds("{}={}".format, st.text("ab.[0]", max_size=8) | texts, yaml_like | texts) | st.text(max_size=20)
)
def test_any_assignment_is_taken_or_refused(assignment):
    try:
        result = assign(BASE, assignment, nothing_held)
    except SpecError:
        problem_of(assign, BASE, assignment, nothing_held).render()
    else:
        assert repr(read_text(dump(result.data), "x").data) == repr(result.data)


@quick
@given(documents, documents)
def test_merge_laws(base, override):
    nothing = Document({})
    assert merge(base, nothing, nothing_held) == base
    assert merge(nothing, override, nothing_held) == override
    assert merge(base, base, nothing_held) == base
    merged = merge(base, override, nothing_held)
    assert merge(merged, override, nothing_held) == merged
    assert all(path in merged.marks for path in paths(merged.data))
    assert_wins(merged.data, override.data)


def assert_wins(merged, override):
    if isinstance(override, dict):
        for key, value in override.items():
            assert_wins(merged[key], value)
    else:
        assert repr(merged) == repr(override)


def test_reading_specs_imports_nothing_heavy():
    code = "import sys, specs.language.reading; print({'torch', 'numpy', 'pydantic', 'difflib'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "set()\n"
