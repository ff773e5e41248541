"""An exported directory is verified where it is: its files, and what its graphs compute from them."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import onnx
import pytest

import zoo
from exporters.exported.verify_export import SUBJECT
from specs.model.model import Model
from tests.thinned import one_in
from tests.zoo.tiny import BLOCK, bert, gpt2, t5, vit
from zoo.files.destination import MANIFEST

WIDE = {"vocab_size": 64, "d_model": 64}


def grouped() -> Model:
    """A decoder for which the fused attention has a quantized cache."""
    attention = {"kind": "grouped_query", "heads": 4, "kv_heads": 2, "bias": False}
    block = {**BLOCK, "attention": attention}
    return gpt2(**WIDE, position={"kind": "rope"}, decoder={"layers": 2, "block": block})


EXPORTS: dict[str, tuple[Model, dict[str, Any]]] = {
    "encoder": (bert(**WIDE), {}),
    "images": (vit(), {}),
    "packed encoder": (bert(**WIDE), {"target": "cpu"}),
    "decoder": (gpt2(**WIDE), {"target": "cpu"}),
    "two graphs in half": (t5(**WIDE), {"target": "cuda", "precision": "fp16"}),
    "bfloat16": (gpt2(**WIDE), {"precision": "bf16"}),
    "int4": (gpt2(**WIDE), {"target": "cpu", "precision": "int4"}),
    "merged": (t5(**WIDE), {"target": "cpu", "layout": "transformers-js", "precision": "int4"}),
    "caches of fixed length": (gpt2(**WIDE), {"target": "tensorrt"}),
    "quantized cache": (grouped(), {"target": "cpu", "cache_precision": "int8"}),
}


@one_in(6)
@pytest.mark.parametrize("name", EXPORTS)
def test_an_unchanged_export_verifies_again(name: str, tmp_path: Path) -> None:
    spec, options = EXPORTS[name]
    zoo.export(spec, tmp_path / "out", **options, verify=False)
    found = zoo.verify(shutil.move(tmp_path / "out", tmp_path / "elsewhere"))
    assert found.passed, str(found)
    assert found.integrity.contents
    assert found.verification is not None
    assert found.verification.subject == SUBJECT
    assert len(found.verification.comparisons) >= 3
    assert (found.unproven, found.fault) == ("", "")
    assert json.loads(json.dumps(found.as_dict()))["passed"] is True
    assert f"{len(found.verification.comparisons)} outputs compared with PyTorch" in str(found)


def test_a_weight_that_changed_is_named(tmp_path: Path) -> None:
    zoo.export(gpt2(), tmp_path / "out", verify=False)
    data = tmp_path / "out" / "model.onnx.data"
    content = bytearray(data.read_bytes())
    tensor = json.loads((tmp_path / "out" / MANIFEST).read_text())["tensors"]["model.onnx.data"]["decoder.final_norm.weight"]  # fmt: skip
    content[tensor["offset"]] ^= 1
    data.write_bytes(content)
    found = zoo.verify(tmp_path / "out")
    assert not found.passed
    assert found.verification is None
    assert "the files have changed" in found.unproven
    assert [change.tensors for change in found.integrity.changes] == [("decoder.final_norm.weight",)]
    assert "out: failed" in str(found)
    assert "decoder.final_norm.weight" in str(found)


def recorded_again(directory: Path, name: str) -> None:
    """Make the record that of a file as it is now."""
    record = json.loads((directory / MANIFEST).read_text())
    content = (directory / name).read_bytes()
    record["files"][name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (directory / MANIFEST).write_text(json.dumps(record))


def test_a_graph_that_computes_something_else_fails_though_its_digest_is_recorded(tmp_path: Path) -> None:
    zoo.export(gpt2(), tmp_path / "out", verify=False)
    path = tmp_path / "out" / "model.onnx"
    graph = onnx.load(path, load_external_data=False)
    softmax = next(node for node in graph.graph.node if node.op_type == "Softmax")
    softmax.attribute[0].i = -2
    onnx.save(graph, path)
    recorded_again(tmp_path / "out", "model.onnx")
    found = zoo.verify(tmp_path / "out")
    assert found.integrity.intact
    assert found.verification is not None
    assert not found.passed
    assert any(not comparison.passed for comparison in found.verification.comparisons)


@pytest.mark.slow
def test_graphs_of_the_stock_exporter_are_run(tmp_path: Path) -> None:
    zoo.export(gpt2(), tmp_path / "out", via="torch")
    found = zoo.verify(tmp_path / "out")
    assert found.passed, str(found)
    assert found.verification is None
    assert "not compared with PyTorch: another version of zoo wrote the files, or PyTorch's exporter did" in str(found)  # fmt: skip


def test_a_layout_of_the_data_that_this_version_would_not_write_is_run(tmp_path: Path) -> None:
    zoo.export(gpt2(**WIDE), tmp_path / "out", verify=False, target="cpu", precision="int4")
    record = json.loads((tmp_path / "out" / MANIFEST).read_text())
    record["options"]["block_size"] = 64
    (tmp_path / "out" / MANIFEST).write_text(json.dumps(record))
    found = zoo.verify(tmp_path / "out")
    assert found.passed
    assert "another version" in found.unproven
    graph = onnx.load(tmp_path / "out" / "model.onnx", load_external_data=False)
    graph.graph.node[0].op_type = "NoSuchOperation"
    onnx.save(graph, tmp_path / "out" / "model.onnx")
    recorded_again(tmp_path / "out", "model.onnx")
    found = zoo.verify(tmp_path / "out")
    assert not found.passed
    assert found.fault.startswith("ONNX Runtime rejects them: ")


def test_too_little_memory_and_no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zoo.export(gpt2(), tmp_path / "bare", weights="none", verify=False)
    assert (zoo.verify(tmp_path / "bare").unproven, zoo.verify(tmp_path / "bare").passed) == ("the export has no weights", True)  # fmt: skip
    zoo.export(gpt2(), tmp_path / "out", verify=False)
    monkeypatch.setattr("exporters.verification.verified_model.available_memory", lambda: 0)
    found = zoo.verify(tmp_path / "out")
    assert (found.passed, found.unproven, found.fault) == (True, "the model does not fit in memory", "")


def test_a_directory_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(zoo.UserError, match=r"is not an export \(no export\.json\)\n  Pass a directory"):
        zoo.verify(tmp_path)
