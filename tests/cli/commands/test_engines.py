"""``zoo engines``, and ``--engine`` of ``zoo export`` and ``zoo verify``."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import onnx
import pytest
from typer.testing import CliRunner

from cli.app import app
from exporters.verification.engines.find import VARIABLE
from specs.forms.resolved import resolved
from specs.language.writing import dump
from tests.zoo.tiny import bert


def zoo(*arguments: object) -> Any:
    return CliRunner().invoke(app, [*map(str, arguments)], prog_name="zoo")


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny BERT, on a machine without engines of their own."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "engines"))
    path = tmp_path / "bert.yaml"
    path.write_text(dump(resolved(bert())), "utf-8")
    return path


def test_an_export_says_where_it_was_proven(spec: Path, tmp_path: Path) -> None:
    out, proven = tmp_path / "out", f"onnx-reference {onnx.__version__}: computed, largest difference"
    shown = zoo("export", spec, "-o", out, "--engine", "onnx-reference")
    assert shown.exit_code == 0, shown.output
    assert proven in shown.output
    assert "not tried: openvino, webgpu, wasm, cuda (--engine NAME; zoo engines lists them)" in shown.output
    assert f"onnx-reference {onnx.__version__} computes the same. No other engine was tried." in (
        out / "README.md"
    ).read_text("utf-8")
    (claim,) = json.loads((out / "export.json").read_bytes())["engines"]
    assert claim == {
        "engine": "onnx-reference",
        "version": onnx.__version__,
        "outcome": "computed",
        "architectures": [],
    }
    again = zoo("verify", out, "--engine", "onnx-reference")
    assert again.exit_code == 0
    assert f"{proven} " in again.output
    assert "in 1 cases" not in again.output
    page = tmp_path / "catalog.html"
    assert zoo("catalog", out, "-o", page).exit_code == 0
    assert f"onnx-reference {onnx.__version__}" in page.read_text("utf-8")


def test_a_missing_engine_is_refused_with_commands_that_install_it(spec: Path, tmp_path: Path) -> None:
    shown = zoo("export", spec, "-o", tmp_path / "out", "--engine", "onnxruntime-1.24.1")
    assert shown.exit_code == 2
    assert "--engine onnxruntime-1.24.1 is not installed on this machine." in shown.output
    assert not (tmp_path / "out").exists()


def test_engines_are_listed_with_what_is_missing(spec: Path, tmp_path: Path) -> None:
    found = {each["name"]: each for each in json.loads(zoo("engines", "--json").output)["engines"]}
    assert found["onnx-reference"]["version"] == onnx.__version__
    assert found["onnxruntime"]["targets"][:2] == ["portable", "cpu"]
    assert found["openvino"]["version"] == ""
    shown = zoo("engines").output
    first = found["openvino"]["install"][0]
    assert f"openvino is not installed. Install it:\n  {first}\n" in shown
    subprocess.run(f"{first} --without-pip", shell=True, check=True)  # as printed
    assert (tmp_path / "engines" / "openvino" / "bin" / "python").exists()
    broken = {each["name"]: each for each in json.loads(zoo("engines", "--json").output)["engines"]}
    assert "No module named" in broken["openvino"]["problem"]


def test_a_provider_and_an_engine_exclude_each_other(tmp_path: Path) -> None:
    shown = zoo("verify", tmp_path, "--engine", "openvino", "--provider", "cpu")
    assert shown.exit_code == 2
    assert "exclude each other" in shown.output
