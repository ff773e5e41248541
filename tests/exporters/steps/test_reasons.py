"""Every refusal has a reason."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from exporters.verification.runtime_outputs import RefusalError, refusals
from specs.base.errors import reason_of


@pytest.mark.parametrize(
    "error", [Exception(), Exception(""), Exception(" \n "), EOFError(), AssertionError()]
)
def test_an_error_without_a_message_is_named(error: Exception) -> None:
    assert reason_of(error) == type(error).__name__
    with pytest.raises(RefusalError, match=type(error).__name__), refusals():
        raise error


def test_the_first_line_of_a_message_is_the_reason() -> None:
    assert reason_of(ValueError("\n  too wide \nmore")) == "too wide"


def test_first_lines_are_taken_in_one_place_only() -> None:
    """``splitlines()[0]`` fails for the empty message, and with a default it gives an empty reason."""
    found = [
        path.as_posix()
        for package in ("specs", "zoo", "exporters", "cli")
        for path in sorted(Path(package).rglob("*.py"))
        if "splitlines" in (text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Subscript)
        and "str(error)" in ast.unparse(node)
        and "splitlines" in ast.unparse(node)
    ]
    assert found == []
