"""Files are UTF-8 whatever the locale is."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.app import app
from specs.language.load import load

SPEC = "extends: bert-tiny\nname: klein\nsummary: Größe 小\n"
OURS = ("specs", "zoo", "exporters", "cli")


@pytest.fixture(autouse=True)
def locale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A locale that fails wherever our own code leaves an encoding to it; an empty directory with a spec."""
    original = io.text_encoding

    def text_encoding(encoding: str | None, stacklevel: int = 2) -> str:
        caller = sys._getframe(2).f_globals["__name__"]
        assert encoding is not None or not caller.startswith(OURS), caller
        return original(encoding, stacklevel)

    monkeypatch.setattr(io, "text_encoding", text_encoding)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "klein.yaml").write_text(SPEC, encoding="utf-8")


def test_specs_configs_and_manifests_are_utf_8() -> None:
    for command in (
        ["convert", "klein.yaml", "-o", "checkpoint"],
        ["import", "checkpoint", "-o", "back.yaml"],
        [
            "export",
            "klein.yaml",
            "--weights",
            "checkpoint",
            "--layout",
            "optimum",
            "--no-verify",
            "-o",
            "out",
        ],
    ):
        result = CliRunner().invoke(app, command, prog_name="zoo", catch_exceptions=False)
        assert result.exit_code == 0, result.output
    for path in (Path("checkpoint/spec.yaml"), Path("out/spec.yaml")):
        assert load(path).summary == "Größe 小"
        assert "Größe 小" in path.read_text(encoding="utf-8")
    assert json.loads(Path("out/export.json").read_text(encoding="utf-8"))["layout"] == "optimum"
