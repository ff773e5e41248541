"""What is in a directory, and what became of each file of a push."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cli.program import invoke


def contents(directory: Path) -> dict[str, bytes]:
    """Every file below a directory by its path."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def states(data: Any) -> dict[str, str]:
    """The state of each file in the data of a push."""
    return {file["name"]: file["state"] for file in data["files"]}


def push_refused(*arguments: object) -> str:
    """What ``zoo push`` says where it refuses, after it has printed what it would change."""
    result = invoke("push", *arguments)
    assert result.exit_code == 2, result.output
    return result.stderr
