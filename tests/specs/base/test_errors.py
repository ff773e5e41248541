"""What a user reads when something is wrong, and the suggestions in it."""

import json
import pickle

import pytest

from specs.base.errors import Mark, PluginError, Problem, SpecError, UserError, option_name, with_flags
from specs.base.suggest import did_you_mean


def test_a_mark_is_written_as_editors_read_it():
    assert str(Mark("gpt2.yaml", 12, 14)) == "gpt2.yaml:12:14"


def test_an_option_is_named_as_its_reader_gives_it():
    mark = Mark.of_option("assignments", "decoder.layers=\x1b")
    assert str(mark) == r"assignments 'decoder.layers=\x1b'"
    assert with_flags(mark.text) == r"--set 'decoder.layers=\x1b'"
    problem = Problem(
        "must be an integer", ("decoder", "layers"), remedy=f"Set {option_name('max_kl')}.", mark=mark
    )
    assert str(SpecError([problem])).startswith("assignments 'decoder")
    assert problem.as_dict()["source"] == str(mark)
    assert problem.as_dict()["remedy"] == "Set max_kl."
    assert problem.as_dict(with_flags)["source"] == with_flags(mark.text)
    assert problem.as_dict(with_flags)["remedy"] == "Set --max-kl."


def test_a_mark_does_not_send_control_characters_to_the_terminal():
    assert str(Mark("\x1b[31m.yaml", 1, 2)) == r"'\x1b[31m.yaml':1:2"
    assert str(Mark("\udc80.yaml")).isascii()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("decoder", "layers", 2, "use"), "decoder.layers[2].use"),
        (("grid", 0, 1), "grid[0][1]"),
        (("blocks", "a.b"), "blocks['a.b']"),
        (("a\x1b",), r"['a\x1b']"),
    ],
)
def test_paths_read_as_users_write_them(path, text):
    assert Problem("r", path).path_text == text


def test_a_problem_shows_place_path_rule_value_and_remedy():
    problem = Problem(
        rule="heads must divide the width 768",
        path=("decoder", "block", "attention", "heads"),
        value=7, remedy="choose from: 1, 2, 3, 4\nor change d_model", mark=Mark("gpt2.yaml", 12, 14),
    )  # fmt: skip
    assert problem.render().splitlines() == [
        "gpt2.yaml:12:14: decoder.block.attention.heads: heads must divide the width 768",
        "  value: 7", "  choose from: 1, 2, 3, 4", "  or change d_model",
    ]  # fmt: skip


def test_absent_parts_of_a_problem_are_omitted():
    assert Problem("the spec must be short").render() == "the spec must be short"
    assert Problem("r", mark=Mark("x.yaml")).render() == "x.yaml: r"
    assert Problem("r", ("a",), value=None).render() == "a: r\n  value: None"


def test_a_long_value_is_cut():
    line = Problem("r", value="x" * 500).render().splitlines()[1]
    assert len(line) == len("  value: ") + 80
    assert line.endswith("...")


def test_a_problem_as_json():
    problem = Problem("r", ("a", 1), 7, "s", Mark("x.yaml", 3, 4))
    assert problem.as_dict() == {
        "source": "x.yaml", "line": 3, "column": 4, "path": "a[1]", "rule": "r", "remedy": "s", "value": 7,
    }  # fmt: skip
    assert "value" not in Problem("r").as_dict()


@pytest.mark.parametrize(
    "value", [None, True, 3, 1.5, float("nan"), float("inf"), "s", [1], {"a": object()}, object()]
)
def test_every_value_can_be_sent_as_strict_json(value):
    json.dumps(Problem("r", value=value).as_dict(), allow_nan=False)


def test_a_spec_error_shows_all_its_problems():
    error = SpecError([Problem("first", ("a",)), Problem("second", ("b",))])
    assert str(error) == "a: first\nb: second"
    assert [problem.rule for problem in error.problems] == ["first", "second"]
    assert isinstance(error, UserError)
    assert issubclass(PluginError, UserError)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_spec_error_has_a_problem():
    with pytest.raises(AssertionError):
        SpecError([])


@pytest.mark.parametrize(
    ("word", "meant"),
    [("rop", "rope"), ("ROPE", "rope"), ("layer-norm", "layer_norm"), ("LayerNorm", "layer_norm"), ("headz", "heads")],
)  # fmt: skip
def test_a_near_miss_is_named(word, meant):
    assert did_you_mean(word, ["heads", "layer_norm", "rope"]) == f"did you mean {meant!r}?"


def test_without_a_near_miss_the_choices_are_listed():
    assert did_you_mean("xyzzy", ["rope", "alibi"]) == "choose from: rope, alibi"
    assert did_you_mean("xyzzy", []) == ""


def test_a_long_list_of_choices_is_cut():
    text = did_you_mean("?", [f"name{n}" for n in range(100)])
    assert text.startswith("choose from: name0, name1, ")
    assert text.endswith("name11, ... (88 more)")


def test_a_huge_word_is_handled_quickly():
    assert did_you_mean("x" * 1_000_000, ["rope"]) == "choose from: rope"
