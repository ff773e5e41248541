"""Exports of layers that share weights: their size, and where their weights are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import onnx
import onnxruntime
import pytest

from exporters.steps.stored_size import stored_sizes
from tests.exporters.models import verified, written
from tests.exporters.reduced_presets import structure
from tests.thinned import one_in
from tests.zoo.components.test_sharing import SHARING, model, side
from tests.zoo.tiny import BLOCK, gpt2


@pytest.mark.slow
@pytest.mark.parametrize("target", ["portable", "cpu", "cuda", "tensorrt"])
@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8", "int4"])
def test_exports_store_shared_weights_once(target: str, precision: str, tmp_path: Path) -> None:
    spec = model(side(sharing=SHARING))
    written(spec, tmp_path / "x", target=target, precision=precision)
    graph = onnx.load(tmp_path / "x/model.onnx", load_external_data=False).graph
    stored = [tensor.name for tensor in graph.initializer if "feed_forward.down" in tensor.name]
    assert all(".blocks.0." in name or ".blocks.1." in name for name in stored)
    assert stored
    assert (tmp_path / "x/model.onnx.data").stat().st_size == stored_sizes(spec, target)[precision]


@pytest.mark.slow
def test_integer_products_of_shared_weights_read_the_same_bytes_by_names_of_their_own(tmp_path: Path) -> None:
    """ONNX Runtime rewrites the codes of a product by name, and refuses to load a graph that names them twice."""
    verified(structure("albert-base-v2"), tmp_path / "x", target="cpu", precision="int8")
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


@one_in(2)
@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_a_norm_that_layers_apply_in_either_precision_has_one_value(precision: str, tmp_path: Path) -> None:
    """The first layer's reads the embedding, in float32, and the second's what a norm made of it, in half."""
    block = {**BLOCK, "kind": "post_norm", "sharing": {"sets": 1}}
    verified(model(block, 2), tmp_path / "x", precision=precision)
    graph = onnx.load(tmp_path / "x/model.onnx", load_external_data=False).graph
    stored = [each.name for each in graph.initializer if "attention_norm.weight" in each.name]
    assert sorted(stored) == [
        f"decoder.blocks.0.attention_norm.weight{ending}" for ending in ("", ".float32")
    ]


@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_no_product_shares_the_names_of_its_weight(precision: str, tmp_path: Path) -> None:
    """ONNX Runtime 1.28 and later fuses no weight that something else reads, such as the table of a tied head."""
    spec = gpt2(vocab_size=64, d_model=64)
    written(spec, tmp_path / "x", precision=precision, verify=False)
    nodes = onnx.load(tmp_path / "x" / "model.onnx", load_external_data=False).graph.node
    readers = Counter(name for node in nodes for name in node.input)
    products = [node for node in nodes if node.op_type == "DequantizeLinear"]
    assert any("embedding.token" in node.input[0] for node in products)
    assert {readers[name] for node in products for name in node.input[:2]} == {1}
    graph = fused(tmp_path / "x")
    assert not [node for node in graph.node if node.op_type == "DequantizeLinear"]
    regions = [
        tuple((entry.key, entry.value) for entry in tensor.external_data)
        for tensor in onnx.load(tmp_path / "x" / "model.onnx", load_external_data=False).graph.initializer
        if "embedding.token.weight.columns" in tensor.name
    ]
    assert len(regions) == 2
    assert len(set(regions)) == 1  # one region of the file


def fused(directory: Path) -> onnx.GraphProto:
    """The graph that ONNX Runtime makes of an export."""
    settings = onnxruntime.SessionOptions()
    settings.optimized_model_filepath = str(directory / "fused.onnx")
    settings.log_severity_level = 3
    onnxruntime.InferenceSession(directory / "model.onnx", settings, providers=["CPUExecutionProvider"])
    return onnx.load(directory / "fused.onnx", load_external_data=False).graph
