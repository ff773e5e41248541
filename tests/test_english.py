"""Names, first sentences and messages in the field's words; a room gets no worse, and what it mends stays mended."""

from __future__ import annotations

import ast
import re

import pytest

from tests.english import Findings, _error_classes, _messages, allowance, counts, findings


@pytest.fixture(scope="module")
def found() -> Findings:
    return findings()


def test_no_room_has_more_than_it_had(found: Findings) -> None:
    allowed = allowance()
    for kind, rooms in found.items():
        for room, lines in rooms.items():
            assert len(lines) <= allowed[kind].get(room, 0), "\n".join(["Name the noun:", *lines])


def test_the_allowance_shrinks(found: Findings) -> None:
    assert counts(found) == allowance(), "Run `python -m tests.english`, which lowers the allowance."


def test_messages_are_read_in_every_kind_of_error() -> None:
    tree = ast.parse(
        "class UserError(Exception): ...\n"
        "class SizeError(errors.UserError): ...\n"
        "class SmallSizeError(SizeError): ...\n"
        "raise SmallSizeError(f'{n}: must have so many\\n  value: {n}')\n"
        "raise ValueError('that of another')\n"
    )
    assert [*_messages(tree, _error_classes([tree]))] == ["...: must have so many", "value: ..."]


def test_findings_name_a_file(found: Findings) -> None:
    lines = [line for rooms in found.values() for lines in rooms.values() for line in lines]
    assert all(re.match(r"(specs|zoo|exporters|cli)/[\w/]+\.py:", line) for line in lines)
