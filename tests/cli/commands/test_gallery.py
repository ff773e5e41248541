"""``zoo gallery``."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.program import invoke, refused


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
    nothing = refused("gallery", "nosuchmodel", "-o", str(tmp_path / "page.html"))
    assert "No preset matches 'nosuchmodel'." in nothing
    suffix = refused("gallery", "tiny-gpt", "-o", str(tmp_path / "page.pdf"))
    assert "--output must end in .html." in suffix
    foreign = tmp_path / "mine.html"
    foreign.write_text("mine")
    assert "was not written by zoo" in refused("gallery", "tiny-gpt", "-o", str(foreign))
    assert foreign.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [foreign]
