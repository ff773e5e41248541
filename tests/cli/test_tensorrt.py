"""``--target tensorrt``: what is told of graphs that cannot be run where they are made, and running them elsewhere."""

from __future__ import annotations

import json

import pytest

from exporters.graph.checking import InvalidGraphError
from exporters.target.providers import present
from exporters.target.targets import TARGETS
from tests.cli.program import done, invoke, refused

pytestmark = pytest.mark.usefixtures("empty_directory")


@pytest.mark.skipif(
    present(TARGETS["tensorrt"].providers) != ["CPUExecutionProvider"], reason="a GPU is here"
)
def test_the_report_lists_fused_and_unfused_operations(tmp_path):
    result = done("export", "tiny-gpt", "--target", "tensorrt", "--cache-length", "20", "-o", "out", "-v")
    assert (
        " on CPUExecutionProvider (not tested on TensorrtExecutionProvider), on the model itself"
        in " ".join(result.split())
    )
    assert "model.onnx: passes the checker and strict shape inference of onnx " in result
    manifest = json.loads((tmp_path / "out/export.json").read_text())
    assert manifest["cache"] == {"kind": "shared", "padding": "right", "length": 20}
    verification = json.loads((tmp_path / "out/build.json").read_text())["verification"]
    assert verification["not_run"] == "TensorrtExecutionProvider"


@pytest.mark.slow
def test_tokens_are_those_of_a_cache_that_grows():
    """Greedily, of prompts of several lengths."""
    prompts = ("--ids", "3,1,4,1,5,9,2,6", "--ids", "2,7,1", "--max-new-tokens", "9", "--json")
    tokens = []
    for target in ("portable", "tensorrt"):
        done("export", "tiny-gpt", "--target", target, "-o", target, "--no-verify")
        result = done("run", target, *prompts)
        tokens.append([answer["ids"] for answer in json.loads(result)["sequences"]])
    assert tokens[0] == tokens[1]


def test_an_invalid_graph_fails_and_nothing_is_written(tmp_path, monkeypatch):
    def refuse(name: str, graph: object) -> None:
        raise InvalidGraphError(f"{name} is not valid ONNX: so it is said")

    monkeypatch.setattr("exporters.steps.publish.check_graph", refuse)
    result = invoke("export", "tiny-gpt", "--no-verify", "-o", "out")
    assert result.exit_code == 1
    assert result.stderr == "model.onnx is not valid ONNX: so it is said\nNothing was written.\n"
    assert not (tmp_path / "out").exists()


def test_an_inapplicable_cache_length_is_refused():
    message = refused("export", "tiny-gpt", "--cache-length", "20", "-o", "out")
    assert message == (
        "--cache-length applies only to caches of fixed length\n  value: 20; --target portable has growing caches, unlike --target tensorrt\n  Leave it out.\n"
    )
