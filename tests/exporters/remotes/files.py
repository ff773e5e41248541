"""What is in a directory, and the program in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from cli.app import app


def contents(directory: Path) -> dict[str, bytes]:
    """Every file below a directory by its path."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def invoke(*arguments: object) -> Any:
    """Run ``zoo`` with some arguments."""
    return CliRunner().invoke(app, list(map(str, arguments)), prog_name="zoo")


def done(*arguments: object) -> str:
    """What ``zoo`` prints where it succeeds."""
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def refused(*arguments: object) -> str:
    """What ``zoo`` says where the input is wrong."""
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    return str(result.stderr)


def as_json(*arguments: object) -> Any:
    """The data that ``zoo`` prints where it succeeds."""
    return json.loads(done(*arguments, "--json"))


def states(data: Any) -> dict[str, str]:
    """The state of each file in the data of a push."""
    return {file["name"]: file["state"] for file in data["files"]}
