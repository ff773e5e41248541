"""What the documentation shows works: commands parse, code compiles, specs validate, and the first guide runs."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatch
from typing import Any

import pytest
from typer.main import get_command

from cli.app import app
from specs.files.device import Device
from specs.files.zoo_file import load_zoo_file
from specs.language.load import load
from specs.language.preset_files import preset_names
from specs.language.reading import read_text
from tests.cli.process import environment, zoo
from tests.docs.pages import ROOT, blocks, commands

PROGRAM: Any = get_command(app)
SHOWN = [
    command
    for block in (*blocks(), *blocks(ROOT / "README.md"))
    if block.language in ("console", "sh")
    for command in commands(block)
]


@pytest.mark.parametrize("command", SHOWN, ids=lambda command: " ".join(command.arguments)[:60])
def test_a_command_parses(command):
    name, *arguments = command.arguments
    PROGRAM.commands[name].make_context(f"zoo {name}", arguments)


def test_there_are_commands_to_parse():
    assert len(SHOWN) > 40


def test_every_preset_is_listed():
    page = (ROOT / "docs" / "guides" / "presets.md").read_text("utf-8")
    patterns = re.findall(r"`([^`]+)`", page)
    assert [name for name in preset_names() if not any(fnmatch(name, each) for each in patterns)] == []


def test_python_compiles():
    found = [ast.parse(block.text) for block in blocks() if block.language == "python"]
    assert len(found) > 4


def test_specs_validate(tmp_path):
    found = [block for block in blocks() if block.language == "yaml"]
    assert len(found) > 4
    (tmp_path / "minilm.yaml").write_text("extends: minilm-l6\n")  # as `zoo import` writes it
    for block in found:
        path = tmp_path / (block.title or "shown.yaml")
        path.write_text(block.text)
        if block.title == "my-device.yaml":
            Device.model_validate(read_text(block.text, block.title).data)
        elif "\nmodels:" in block.text or block.text.startswith("models:"):
            load_zoo_file(path)
        elif block.title != "wrong.yaml":
            load(path)


@pytest.mark.slow
def test_the_first_guide_runs(tmp_path):
    """Its commands run one after the other in one directory; ``test_quoted`` compares what they print."""
    ran = 0
    for block in blocks(ROOT / "docs" / "guides" / "first-variant.md"):
        if block.language == "yaml":
            (tmp_path / block.title).write_text(block.text)
        for command in commands(block) if block.language == "console" else ():
            done = zoo(*command.arguments, cwd=tmp_path, env=environment())
            assert done.returncode == command.status, f"{command.arguments}: {done.stdout}{done.stderr}"
            ran += 1
    assert ran > 8
