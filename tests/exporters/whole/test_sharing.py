"""Exports of layers that share weights: their size, and where their weights are."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from exporters.export import export
from exporters.steps.options import ExportOptions
from exporters.steps.stored_size import stored_sizes
from tests.exporters.reduced_presets import structure
from tests.zoo.components.test_sharing import SHARING, model, side
from tests.zoo.tiny import BLOCK


@pytest.mark.slow
@pytest.mark.parametrize("target", ["portable", "cpu", "cuda", "tensorrt"])
@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8", "int4"])
def test_exports_store_shared_weights_once(target: str, precision: str, tmp_path: Path) -> None:
    spec = model(side(sharing=SHARING))
    export(spec, tmp_path / "x", ExportOptions.of(target=target, precision=precision))
    graph = onnx.load(tmp_path / "x/model.onnx", load_external_data=False).graph
    stored = [tensor.name for tensor in graph.initializer if "feed_forward.down" in tensor.name]
    assert all(".blocks.0." in name or ".blocks.1." in name for name in stored)
    assert stored
    assert (tmp_path / "x/model.onnx.data").stat().st_size == stored_sizes(spec, target)[precision]


def test_integer_products_of_shared_weights_read_the_same_bytes_by_names_of_their_own(tmp_path: Path) -> None:
    """ONNX Runtime rewrites the codes of a product by name, and refuses to load a graph that names them twice."""
    result = export(
        structure("albert-base-v2"), tmp_path / "x", ExportOptions(target="cpu", precision="int8")
    )
    assert result.verification is not None
    graph = onnx.load(tmp_path / "x/model.onnx", load_external_data=False).graph
    codes = [node.input[1] for node in graph.node if node.op_type == "MatMulInteger"]
    assert len(set(codes)) == len(codes)
    places = {
        tensor.name: {entry.key: entry.value for entry in tensor.external_data}
        for tensor in graph.initializer
    }
    name = "encoder.blocks.0.feed_forward.up.weight.columns"
    assert {name, f"{name}_1"} <= set(codes)
    assert places[name] == places[f"{name}_1"]


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_a_norm_that_layers_apply_in_either_precision_has_one_value(precision: str, tmp_path: Path) -> None:
    """The first layer's reads the embedding, in float32, and the second's what a norm made of it, in half."""
    block = {**BLOCK, "kind": "post_norm", "sharing": {"sets": 1}}
    result = export(model(block, 2), tmp_path / "x", ExportOptions.of(precision=precision))
    assert result.verification is not None
    graph = onnx.load(tmp_path / "x/model.onnx", load_external_data=False).graph
    stored = [each.name for each in graph.initializer if "attention_norm.weight" in each.name]
    assert sorted(stored) == [
        f"decoder.blocks.0.attention_norm.weight{ending}" for ending in ("", ".float32")
    ]
