"""Default screens next to their goldens: what a command prints at 80 columns, without times and other changing figures.

``UPDATE_SCREENS=1 pytest tests/cli/screens`` writes the goldens anew.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.app import app

GOLDEN = Path(__file__).with_name("golden")
WIDTH = 80
MOST_LINES = 15
UPDATE = "If the change is intended, run UPDATE_SCREENS=1 pytest tests/cli/screens."

_CHANGING = [
    (r"\d+ min \d\d s\b", "TIME"),
    (r"\b[\d.]+ (?:us|ms|s)\b", "TIME"),
    (r"\b[\d,.]+ tokens/s", "RATE"),
    (r"\b[0-9a-f]{12,64}\b", "DIGEST"),
    (r"\b\d\.?\d*e[-+]\d\d\b", "#"),
    (r"\b(onnxruntime|ONNX Runtime|onnx) \d+\.\d+\.\d+", r"\1 VERSION"),
]
"""Patterns of what differs from run to run or from machine to machine, and their replacements."""


Zoo = Callable[..., str]
"""Runs a command that ends with a status, and returns what it prints to both streams."""


def zoo_in(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Zoo:
    """Commands run in a directory, without a terminal."""
    monkeypatch.chdir(directory)
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*arguments: str, status: int = 0) -> str:
        result = CliRunner().invoke(app, arguments, prog_name="zoo")
        assert result.exit_code == status, result.output
        return result.output

    return run


def goldens() -> list[Path]:
    """Every golden."""
    return sorted(GOLDEN.glob("*.txt"))


def check_screen(name: str, output: str) -> None:
    """Assert that a screen fits, and that it is the golden ``name``."""
    check_size(output)
    text = unchanging(output)
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_SCREENS"):
        golden.write_text(text, "utf-8")
    assert golden.exists(), f"there is no {golden.name}.  {UPDATE}"
    assert text == golden.read_text("utf-8"), UPDATE


def check_size(output: str) -> None:
    """Assert that a screen has at most 15 lines of 80 columns."""
    lines = output.splitlines()
    assert len(lines) <= MOST_LINES, f"{len(lines)} lines:\n{output}"
    assert not (wide := [line for line in lines if len(line) > WIDTH]), wide


def unchanging(output: str) -> str:
    """The output with times, digests, versions and rounding errors replaced, and the spaces of alignment that they change."""
    for pattern, replacement in _CHANGING:
        output = re.sub(pattern, replacement, output)
    return output


def next_steps(text: str) -> Iterator[list[str]]:
    """The arguments of every command of the program that a screen proposes."""
    joined = re.sub(r" \\\n +", " ", text)
    for line in joined.splitlines():
        if line.startswith("  zoo "):
            yield shlex.split(line, comments=True)[1:]
