"""Exports in an opset that was asked for: what they hold, what the runtime needs to accept them, and what is refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest

from exporters.export import export
from exporters.steps.options import ExportOptions
from specs.base.errors import UserError
from tests.exporters.models import GRAPH_ONLY, verified, written
from tests.exporters.whole.test_mixers import hybrid
from tests.zoo.tiny import gpt2
from zoo.record.certificate import certify

VARIABLE = "ALLOW_RELEASED_ONNX_OPSET_ONLY"


@pytest.fixture(autouse=True)
def refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has not accepted any opset yet."""
    monkeypatch.setenv(VARIABLE, "1")


def test_standard_operations_are_verified_and_certified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = verified(hybrid("gated_delta_net"), tmp_path / "x", opset=27)
    graph = result.manifest.graphs["model.onnx"]
    assert (graph.opset, graph.minimum_runtime) == (27, "onnxruntime 1.28.0")
    assert graph.environment == {VARIABLE: "0"}
    assert graph.operations["LinearAttention"] == graph.operations["CausalConvWithState"] == 1
    model = onnx.load(tmp_path / "x" / "model.onnx", load_external_data=False)
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", 27)]
    monkeypatch.setenv(VARIABLE, "1")
    assert certify(tmp_path / "x").passed
    assert os.environ[VARIABLE] == "0"


def test_the_card_says_what_the_runtime_needs_and_its_program_runs(tmp_path: Path) -> None:
    written(hybrid("linear_attention"), tmp_path / "x", opset=27)
    text = (tmp_path / "x" / "README.md").read_text()
    assert (
        f"ONNX Runtime refuses the opset of these files unless the environment variable {VARIABLE} is 0."
        in text
    )
    program = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert program is not None
    done = subprocess.run(
        [sys.executable, "-c", program[1]], cwd=tmp_path / "x", capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_models_without_such_mixers_have_the_opset_too(tmp_path: Path) -> None:
    graphs = written(gpt2(), tmp_path / "x", opset=27).manifest.graphs
    assert {graph.opset for graph in graphs.values()} == {27}


def test_the_lowest_opset_needs_no_environment(tmp_path: Path) -> None:
    graph = export(hybrid("gated_delta_net"), tmp_path / "x", GRAPH_ONLY).manifest.graphs["model.onnx"]
    assert (graph.opset, graph.environment) == (20, {})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"opset": 22},
            "opset must be 27, which has operations for mixers with a state\n"
            "  value: 22\n  Leave it out for the lowest opset that each graph needs.",
        ),
        (
            {"opset": 27, "target": "cpu"},
            "opset applies only to target portable\n  value: cpu\n  Leave opset out, or use target portable.",
        ),
        (
            {"opset": 27, "layout": "optimum"},
            "opset applies only to layout onnx\n  value: optimum\n  Leave opset out, or use layout onnx.",
        ),
        (
            {"opset": 27, "via": "torch"},
            "opset applies only to via fx\n  value: torch\n  Leave opset out, or use via fx.",
        ),
    ],
)
def test_other_opsets_and_places_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        ExportOptions(**options)
    assert str(error.value) == message
