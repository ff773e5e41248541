"""Every output that a page quotes is what the program prints, in that order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import Command
from tests.docs.quoted import NOT_RUN, comparable, prepare, printed, quoted, why_not_run

QUOTED = [*quoted()]
RUN = [command for command in QUOTED if not why_not_run(command)]
QUICK = ("list", "validate")


def _name(command: Command) -> str:
    return f"{command.page}: {' '.join(command.arguments)}"[:90]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(each, marks=() if each.arguments[0] in QUICK else pytest.mark.slow, id=_name(each))
        for each in RUN
    ],
)
def test_a_quoted_output_is_what_the_program_prints(tmp_path: Path, command: Command) -> None:
    prepare(tmp_path, command.page)
    status, output = printed(command, tmp_path)
    assert status == command.status, output
    lines = iter(comparable(command, output))
    for line in comparable(command, command.output):
        assert line in lines, (
            f"{line!r} is not printed, or not in this place"
        )  # a search goes on where the last ended


def test_outputs_that_are_not_run_are_few() -> None:
    left = {reason for command in QUOTED if (reason := why_not_run(command))}
    assert left == set(NOT_RUN.values())
    assert len(QUOTED) - len(RUN) <= 10
    assert len(RUN) >= 24


def test_a_changed_line_is_noticed() -> None:
    command = next(each for each in RUN if each.arguments[0] == "params")
    shown = comparable(command, command.output)
    assert comparable(command, command.output.replace("60,506,624", "60,506,625")) != shown
    assert comparable(command, command.output.replace("decoder", "encoder")) != shown
    assert comparable(command, command.output.replace("   ", "  ")) == shown
