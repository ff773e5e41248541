"""The help of every command: it fits a terminal, cuts nothing off, and names each option once, in a group."""

import re
from typing import Any

import pytest
from typer.main import get_command

from cli.app import app
from cli.terminal.command_table import FUNCTIONS
from cli.terminal.option_groups import DETAILS, FIRST, OUTPUT, RENAMED
from tests.cli.program import invoke, refused

PROGRAM: Any = get_command(app)
ROOT = PROGRAM.make_context("zoo", ["list"], resilient_parsing=True)
SCREEN = 44

DIFFERENT = {
    "--architecture": "zoo new starts from three of the five that zoo list knows",
    "--audio": "zoo attend reads one input, zoo run several",
    "--ids": "zoo attend reads one input, zoo run several",
    "--image": "zoo attend reads one input, zoo run several",
    "--text": "zoo attend reads one text or a pair, zoo run several",
    "--as": "zoo convert and zoo adapt also write a checkpoint of that family",
    "--adapter": "zoo export writes several under names of their own, zoo run switches one on",
    "--engine": "an export is proven on several engines, zoo verify runs one",
    "--key": "zoo sign takes the private key, zoo verify the public one",
    "--max-new-tokens": "zoo attend may generate none",
    "--name": "zoo import names a spec after the directory",
    "--output": "what is written differs: a directory, a file, or several files",
    "--seed": "zoo run seeds sampling, zoo compare training",
    "--target": "zoo report takes that of an export by default",
    "--weights": "zoo export and zoo build also write graphs without weights",
}
"""The options that differ between commands, and why."""


def context_of(name: str) -> Any:
    command = PROGRAM.commands[name]
    return command, command.context_class(command, info_name=name, parent=ROOT)


def options_of(name: str) -> list[Any]:
    return [option for option in PROGRAM.commands[name].params if option.param_type_name == "option"]


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_fits_a_terminal_and_cuts_nothing_off(name):
    command, context = context_of(name)
    first, whole = command.get_help(context).splitlines(), command.full_help(context).splitlines()
    assert max(map(len, first + whole)) <= 80
    assert len(first) <= SCREEN
    assert first[0].startswith(f"Usage: zoo {name} [OPTIONS]")
    assert not re.search(r"[{}]|\[\[", first[0])
    assert not [line for line in first + whole if line.endswith("...") and "Usage" not in line]
    assert not re.search(r"x[<>]=|<str>|<int>|<path>|TEXT\]", "\n".join(whole))
    examples = [line for line in whole if line.startswith(f"    zoo {name}")]
    assert examples, "an example"
    assert set(examples) <= set(first)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_option_stands_in_a_group_once(name):
    command, context = context_of(name)
    options = options_of(name)
    assert {option.rich_help_panel or OUTPUT for option in options} <= {*FIRST, *DETAILS}
    whole = command.full_help(context)
    titles = [title for title, _ in command.sections(context)]
    assert re.findall(r"(?m)^([A-Z][^:\n]*|int4 only):$", whole) == titles
    rows = [names for _, rows in command.sections(context) for names, _ in rows]
    for option in options:
        longest = max(option.opts, key=len)
        (names,) = [names for names in rows if longest in re.split("[ ,/]+", names)]
        assert f"\n  {names}" in whole
    if "--help-all" not in command.get_help(context):
        assert command.get_help(context) == whole


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_first_help_names_what_it_leaves_out(name):
    command, context = context_of(name)
    first = command.get_help(context)
    left = [title for title, _ in command.sections(context) if f"\n{title}:\n" not in first]
    for title in left:
        assert title in " ".join(first.partition("--help-all also describes")[2].split())


def test_an_option_has_one_meaning_in_all_commands():
    meanings: dict[str, set[Any]] = {}
    for name in FUNCTIONS:
        for option in options_of(name):
            text = re.sub(r"\s*\[default: .*\]$", "", option.help or "")
            kind = option.multiple, option.is_flag, option.metavar, option.min, " ".join(text.split())
            meanings.setdefault(max(option.opts, key=len), set()).add(kind)
    differing = {name for name, kinds in meanings.items() if len(kinds) > 1}
    assert differing == {*DIFFERENT}, {name: meanings[name] for name in differing ^ {*DIFFERENT}}


@pytest.mark.parametrize(("command", "old"), RENAMED)
def test_an_old_name_says_the_new_one(command, old):
    now = RENAMED[command, old]
    assert now in {name for option in options_of(command) for name in option.opts}
    message = refused(command, "x", old, "y")
    assert message == f"zoo {command} has no option {old}: it is {now} now.\n  Pass {now}.\n"


def test_help_all_describes_everything():
    first, whole = invoke("export", "--help").stdout, invoke("export", "--help-all").stdout
    assert "--block-size" not in first
    assert "--help-all also describes Random weights, Graphs, KV cache, int4 only, Quality." in first
    assert "\nint4 only:\n  --block-size 32|64|128" in whole
    assert invoke("export", "gpt2", "--", "--help-all").exit_code == 2  # an argument, not the option


@pytest.mark.parametrize(
    ("name", "usage"),
    [
        ("make", "zoo make [OPTIONS] [FILE] [NAME]..."),
        ("catalog", "zoo catalog [OPTIONS] [FILE|DIR]"),
        ("build", "zoo build [OPTIONS] SPEC"),
        ("validate", "zoo validate [OPTIONS] SPEC..."),
        ("list", "zoo list [OPTIONS] [WORD]..."),
    ],
)
def test_usage_can_be_read(name, usage):
    assert invoke(name, "--help").stdout.splitlines()[0] == f"Usage: {usage}"
