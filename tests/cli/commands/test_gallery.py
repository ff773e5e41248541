"""``zoo gallery``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from cli.app import app


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments, prog_name="zoo")


def test_a_gallery_of_some_presets(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    result = invoke("gallery", "tiny-gpt", "-o", str(path))
    assert result.exit_code == 0
    assert "1 preset" in result.stdout
    assert result.stderr == "[1/1] cards\n"
    assert "Gallery of architectures" in path.read_text("utf-8")
    again = invoke("gallery", "tiny-gpt", "-o", str(path), "--json")
    data = json.loads(again.stdout)
    assert data["presets"] == ["tiny-gpt"]
    assert data["bytes"] == path.stat().st_size


def test_wrong_input_is_told_before_anything_is_built(tmp_path: Path) -> None:
    nothing = invoke("gallery", "nosuchmodel", "-o", str(tmp_path / "page.html"))
    assert nothing.exit_code == 2
    assert "No preset matches 'nosuchmodel'." in nothing.stderr
    suffix = invoke("gallery", "tiny-gpt", "-o", str(tmp_path / "page.pdf"))
    assert suffix.exit_code == 2
    assert "--output must end in .html." in suffix.stderr
    foreign = tmp_path / "mine.html"
    foreign.write_text("mine")
    refused = invoke("gallery", "tiny-gpt", "-o", str(foreign))
    assert refused.exit_code == 2
    assert "was not written by zoo" in refused.stderr
    assert foreign.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [foreign]
