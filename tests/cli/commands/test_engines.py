"""``zoo engines``, and ``--engine`` of ``zoo export`` and ``zoo verify``."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import onnx
import pytest

from exporters.target.targets import TARGETS
from exporters.verification.engines import inventory
from exporters.verification.engines.find import VARIABLE
from exporters.verification.engines.inventory import EngineState
from specs.forms.resolved import resolved
from specs.language.writing import dump
from tests.cli.program import done, invoke
from tests.zoo.tiny import bert


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny BERT, on a machine without engines of their own."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "engines"))
    path = tmp_path / "bert.yaml"
    path.write_text(dump(resolved(bert())), "utf-8")
    return path


@pytest.mark.slow
def test_an_export_says_where_it_was_proven(spec: Path, tmp_path: Path) -> None:
    out, proven = tmp_path / "out", f"onnx-reference {onnx.__version__}: computed, largest difference"
    shown = invoke("export", spec, "-o", out, "--engine", "onnx-reference", "-v")
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
    both = invoke("verify", out, "--engine", "onnx-reference", "--engine", "onnxruntime")
    assert both.exit_code == 0
    assert f"{proven} " in both.output
    assert "in 1 cases" not in both.output
    assert re.findall(r"(onnx\S+) \S+: computed", both.output) == ["onnx-reference", "onnxruntime"]
    found = json.loads(
        invoke("verify", out, "--engine", "onnx-reference", "--engine", "onnxruntime", "--json").output
    )
    assert found["passed"] is True
    assert [(each["engine"], each["outcome"]) for each in found["engines"]] == [
        ("onnx-reference", "computed"),
        ("onnxruntime", "computed"),
    ]
    assert all(each["outputs"] for each in found["engines"])
    page = tmp_path / "catalog.html"
    done("catalog", out, "-o", page)
    assert f"onnx-reference {onnx.__version__}" in page.read_text("utf-8")


def test_a_missing_engine_is_refused_with_commands_that_install_it(spec: Path, tmp_path: Path) -> None:
    shown = invoke("export", spec, "-o", tmp_path / "out", "--engine", "onnxruntime-1.24.1")
    assert shown.exit_code == 2
    assert "--engine onnxruntime-1.24.1 is not installed on this machine." in shown.output
    assert not (tmp_path / "out").exists()


def test_engines_are_listed_with_what_is_missing(spec: Path, tmp_path: Path) -> None:
    found = {each["name"]: each for each in json.loads(invoke("engines", "--json").output)["engines"]}
    assert found["onnx-reference"]["version"] == onnx.__version__
    assert found["onnxruntime"]["targets"][:2] == ["portable", "cpu"]
    assert found["openvino"]["version"] == ""
    shown = invoke("engines", "-v").output
    first = found["openvino"]["install"][0]
    assert f"openvino is not installed. Install it:\n  {first}\n" in shown
    subprocess.run(f"{first} --without-pip", shell=True, check=True)  # as printed
    assert (tmp_path / "engines" / "openvino" / "bin" / "python").exists()
    broken = {each["name"]: each for each in json.loads(invoke("engines", "--json").output)["engines"]}
    assert "No module named" in broken["openvino"]["problem"]


def state(name: str, version: str, targets: tuple[str, ...]) -> EngineState:
    return EngineState(name, "what it is", "computes", targets, version, "python", "", "", ())


def test_the_table_of_engines_fits_80_columns_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    states = [
        state("onnxruntime-1.24.10", "1.24.10", tuple(TARGETS)),
        state("webgpu", "0.4.0 on ONNX Runtime 1.32.0", ("portable", "webgpu")),
        state("wasm", "1.26.0-dev.20260416-b7804b056c", ("portable",)),
        state("cuda", "", ("portable", "cuda")),
    ]
    monkeypatch.setattr(inventory, "inventory", lambda: states)
    short = invoke("engines").output.partition("\n\n")[0].splitlines()
    assert max(map(len, short)) <= 80
    rows = [re.split(r" {3,}", line.rstrip()) for line in short[2:]]
    assert rows == [
        ["onnxruntime-1.24.10", "1.24.10", "computes", "all"],
        ["webgpu", "0.4.0", "computes", "portable, webgpu"],
        ["wasm", "1.26.0-dev", "computes", "portable"],
        ["cuda", "-", "computes", "portable, cuda"],
    ]
    whole = invoke("engines", "-v").output
    for each in states:
        assert re.search(
            rf"{each.name} +{re.escape(each.version or '-')} +computes +{', '.join(each.targets)} +what it is\n",
            whole,
        )


@pytest.mark.parametrize("other", [["--engine", "openvino"], ["--pytorch"]])
def test_a_provider_is_exclusive(tmp_path: Path, other: list[str]) -> None:
    shown = invoke("verify", tmp_path, *other, "--provider", "cpu")
    assert shown.exit_code == 2
    assert f"--provider and {other[0]} are mutually exclusive" in shown.output


@pytest.mark.slow
def test_one_engine_that_fails_fails_the_verification(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    done("export", spec, "-o", out)
    names = ["--engine", "onnx-reference", "--engine", "onnxruntime-1.24.1"]
    shown = invoke("verify", out, *names)
    assert shown.exit_code == 2  # before anything is run
    assert "--engine onnxruntime-1.24.1 is not installed" in shown.output
    broken = tmp_path / "engines" / "onnxruntime-1.24.1" / "bin" / "python"
    broken.parent.mkdir(parents=True)
    broken.write_text("#!/bin/sh\necho no such module >&2\nexit 1\n", "utf-8")
    broken.chmod(0o755)
    for order in (names, [*names[2:], *names[:2]]):
        shown = invoke("verify", out, *order)
        assert shown.exit_code == 1
        assert f"onnx-reference {onnx.__version__}: computed" in shown.output
        assert "onnxruntime-1.24.1: failed: the process ended with status 1" in shown.output
        assert "\n    Run zoo verify without --engine to compare the files alone.\n" in shown.output
        found = json.loads(invoke("verify", out, *order, "--json").output)
        assert found["passed"] is False
        assert {each["engine"]: each["outcome"] for each in found["engines"]} == {
            "onnx-reference": "computed",
            "onnxruntime-1.24.1": "failed",
        }
        (error,) = found["errors"]
        assert error["message"].startswith("onnxruntime-1.24.1: failed: ")
