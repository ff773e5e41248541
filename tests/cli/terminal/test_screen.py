"""Default screens and the live line."""

import pytest

from cli.terminal.screen import Screen, good
from specs.base.errors import UserError


def test_rows_are_aligned_wrapped_and_within_80_columns(capsys):
    screen = Screen()
    screen.title("tiny", "A model with a description", "decoder")
    screen.row("params", ("223,616, ", good("as published")), "embedding 11 %")
    screen.row("checks", ", ".join(["padding content"] * 8))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "tiny  A model with a description" + " " * 41 + "decoder"
    assert lines[1:4] == [
        "  params  223,616, as published",
        "          embedding 11 %",
        "  checks  padding content, padding content, padding content, padding content,",
    ]
    assert lines[4].startswith("          padding content")
    assert max(map(len, lines)) <= 80


def test_a_title_without_room_for_the_kind_has_none(capsys):
    Screen().title("tiny", "x" * 73, "decoder")
    assert capsys.readouterr().out == "tiny  " + "x" * 73 + "\n"


def test_comments_are_aligned_or_above(capsys):
    Screen().next((["list"], "find one"), (["show", "gpt2"], "read it"), (["run", "a" * 68], "try it"))
    assert capsys.readouterr().out.splitlines() == [
        "  zoo list       # find one",
        "  zoo show gpt2  # read it",
        "  # try it",
        f"  zoo run {'a' * 68}",
    ]


def test_next_steps_are_for_the_shell(capsys):
    Screen().next((["run", "out dir", "--text", "a b"], "try it"), (["list"], ""))
    assert capsys.readouterr().out.splitlines() == [
        "  zoo run 'out dir' --text 'a b'  # try it",
        "  zoo list",
    ]


def test_a_long_command_goes_on_in_the_next_line(capsys):
    Screen().next((["run", "a" * 60, "--tokenizer", "b" * 60], "try it"))
    assert capsys.readouterr().out.splitlines() == [
        "  # try it",
        f"  zoo run {'a' * 60} \\",
        f"    --tokenizer {'b' * 60}",
    ]


def test_quiet_prints_failures_alone(capsys):
    screen = Screen(quiet=True)
    screen.title("tiny")
    screen.row("params", "1")
    screen.done("tiny is ready")
    screen.next((["list"], ""))
    screen.failed("Not exported.", [("expect.parameters: is 1", "Remove `expect`.")])
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == ["Not exported.", "  expect.parameters: is 1", "    Remove `expect`."]


def test_verbose_has_tables_in_place_of_rows(capsys):
    screen = Screen(verbose=True)
    screen.row("params", "1")
    screen.done("tiny is ready")
    assert screen.tables
    assert capsys.readouterr().out.startswith("\ntiny is ready in 0.0 s.")


def test_json_has_neither(capsys):
    screen = Screen(verbose=True, as_json=True)
    screen.title("tiny")
    screen.failed("Not exported.")
    assert not screen.tables
    assert capsys.readouterr() == ("", "")


def test_verbose_and_quiet_exclude_each_other():
    with pytest.raises(UserError, match="mutually exclusive"):
        Screen(verbose=True, quiet=True)


def test_control_characters_are_escaped(capsys):
    Screen().row("params", "a\x1b[31mb")
    assert "\x1b" not in capsys.readouterr().out
