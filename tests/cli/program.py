"""The program within this process."""

from __future__ import annotations

import json
import os
from typing import Any

from typer.testing import CliRunner, Result

from cli.app import app


def invoke(*arguments: object) -> Result:
    """Run ``zoo``, in 160 columns if the environment does not say how wide the terminal is."""
    runner = CliRunner(env={"COLUMNS": os.environ.get("COLUMNS", "160")})
    return runner.invoke(app, list(map(str, arguments)), prog_name="zoo")


def done(*arguments: object) -> str:
    """What ``zoo`` prints where it succeeds."""
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: object) -> str:
    """What ``zoo`` says where the input is wrong."""
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert "Traceback" not in result.stderr
    return result.stderr


def as_json(*arguments: object) -> Any:
    """The data that ``zoo`` prints where it succeeds."""
    return json.loads(done(*arguments, "--json"))
