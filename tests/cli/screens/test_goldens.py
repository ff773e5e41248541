"""Every golden fits its screen, and the commands that it proposes are commands of the program."""

from pathlib import Path
from typing import cast

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from cli.app import app
from tests.cli.screens.screens import check_size, goldens, next_steps


@pytest.mark.parametrize("golden", goldens(), ids=lambda path: path.stem)
def test_a_screen_has_15_lines_of_80_columns_at_most(golden: Path) -> None:
    check_size(golden.read_text("utf-8"))


@pytest.mark.parametrize("golden", goldens(), ids=lambda path: path.stem)
def test_the_next_steps_are_commands_of_the_program(golden: Path) -> None:
    program = cast(TyperGroup, get_command(app))
    for arguments in next_steps(golden.read_text("utf-8")):
        command = program.commands[arguments[0]]
        command.make_context(arguments[0], arguments[1:])
