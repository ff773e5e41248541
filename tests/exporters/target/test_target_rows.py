"""What a target's row says of stored weights: positive scales, whole blocks, and floats where layers share weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
import torch
from onnx import numpy_helper

from exporters.export import export
from exporters.graph.quantization.scheme import Quantization
from exporters.rounding.scales import searched
from exporters.steps.graphs import Graphs
from exporters.steps.options import ExportOptions
from exporters.steps.plan import Plan
from specs.model.model import Model
from tests.exporters.reduced_presets import structure
from tests.thinned import one_in
from tests.zoo.tiny import BLOCK, bert, gpt2
from zoo.weights.blocks import Blocks


def wide(**changes: object) -> Model:
    """A tiny BERT of three layers with matrices that are quantized."""
    block = {**BLOCK, "kind": "post_norm", "feed_forward": {**BLOCK["feed_forward"], "hidden": 80}}
    return bert(d_model=64, vocab_size=64, encoder={"layers": 3, "block": block}, **changes)


def scales(place: Path) -> Iterator[tuple[list[int], onnx.TensorProto]]:
    """The sizes of quantized weights, and their scales."""
    graph = onnx.load(place / "model.onnx").graph
    weights = {weight.name: weight for weight in graph.initializer}
    for node in graph.node:
        if node.op_type == "DequantizeLinear":
            yield list(weights[node.input[0]].dims), weights[node.input[1]]


@one_in(2)
@pytest.mark.parametrize(("precision", "bits"), [("int8", 8), ("int4", 4)])
def test_scales_of_8_bits_are_positive_and_blocks_divide_the_width(
    precision: str, bits: int, tmp_path: Path
) -> None:
    export(wide(), tmp_path / "x", ExportOptions.of(target="tensorrt", precision=precision))
    found = [*scales(tmp_path / "x")]
    assert len(found) > 15
    matrices = [(dims, numpy_helper.to_array(scale)) for dims, scale in found if len(scale.dims) == 2]
    for (width, _), values in matrices:
        assert width % len(values) == 0
        assert width // len(values) in (16, 32, 64, 128)
    assert {width // len(values) for (width, _), values in matrices} == {32, 16}
    negative = any((values < 0).any() for _, values in matrices)
    assert negative == (bits == 4)


def test_positive_scales_reach_the_largest_value_of_either_sign() -> None:
    rows = torch.tensor([[1.0, -0.3, 0.2, 0.1], [-1.0, 0.3, 0.2, 0.1]])
    blocks = Blocks(8, None, positive=True)
    for quantized in (blocks.quantize(rows), searched(blocks, rows, None, torch.float32)):
        assert (quantized.scales > 0).all()
        assert (blocks.restore(quantized, 4) - rows).abs().max() < 0.005


def test_a_matrix_that_no_block_divides_stays_float() -> None:
    whole = Quantization(Blocks(4, 32), Blocks(8, None), undivided="floats")
    sizes = {width: whole.of(("a.weight",), (64, width)) for width in (64, 80, 100)}
    assert [None if found is None else found.size for found in sizes.values()] == [32, 16, None]
    padded = replace(whole, undivided="short block").of(("a.weight",), (64, 100))
    assert padded is not None
    assert padded.size == 32


def test_rows_of_8_bits_have_two_blocks_for_tensorrt() -> None:
    """One block per row in queries, keys and values ends the compiler with an internal error, if the batch is one."""
    found = {
        width: Quantization(Blocks(bits, 128), Blocks(bits, 128), undivided="floats").of(("a.weight",), (64, width))
        for bits, width in ((8, 64), (8, 32), (8, 128), (8, 1024), (4, 96))
    }  # fmt: skip
    assert {width: blocks.size for width, blocks in found.items() if blocks} == {
        64: 32, 32: 16, 128: 64, 1024: 128, 96: 32,
    }  # fmt: skip
    four = Quantization(Blocks(4, 64), Blocks(4, 64), undivided="floats").of(("a.weight",), (64, 64))
    assert four is not None
    assert four.size == 64


def test_a_graph_whose_tied_table_alone_is_quantized_runs(tmp_path: Path) -> None:
    spec = gpt2(d_model=36, vocab_size=64)
    result = export(spec, tmp_path / "x", ExportOptions(target="tensorrt", precision="int8"))
    assert result.verification is not None
    assert len([*scales(tmp_path / "x")]) == 1


@one_in(2)
@pytest.mark.parametrize("target", ["tensorrt", "portable"])
def test_weights_that_layers_share_are_quantized_under_names_of_each_product(
    target: str, tmp_path: Path
) -> None:
    export(structure("albert-base-v2"), tmp_path / "x", ExportOptions.of(target=target, precision="int4"))
    graph = onnx.load(tmp_path / "x" / "model.onnx", load_external_data=False).graph
    layers = [value for value in graph.initializer if ".blocks." in value.name and value.name.count(".scale")]
    places = [{entry.key: entry.value for entry in value.external_data}["offset"] for value in layers]
    assert len(layers) > len({*places}) > 0  # the same bytes


@pytest.mark.parametrize("target", ["portable", "tensorrt"])
def test_the_softmax_of_attention_without_a_mask_has_a_rank_of_its_own_where_engines_fuse_it_wrongly(
    target: str,
) -> None:
    plan = Plan.make(structure("wav2vec2-base-960h"), ExportOptions.of(target=target))
    (graph,) = (message.graph for message in Graphs.of(plan).messages().values())
    before = {name: node.op_type for node in graph.node for name in node.output}
    softmaxes = [before[node.input[0]] for node in graph.node if node.op_type == "Softmax"]
    assert {*softmaxes} == {"Unsqueeze" if target == "portable" else "MatMul"}


@pytest.mark.slow
def test_groups_of_six_channels_are_of_eight_for_webgpu(tmp_path: Path) -> None:
    """The provider mixes groups whose outputs are no whole vectors of 4 (``tests/engines/test_faults.py``)."""
    gathers = []
    for target in ("portable", "webgpu"):
        export(structure("wavlm-base-plus"), tmp_path / target, ExportOptions(target=target))
        graph = onnx.load(tmp_path / target / "model.onnx", load_external_data=False).graph
        sources = {name: node for node in graph.node for name in node.output}
        (groups,) = [
            node
            for node in graph.node
            if node.op_type == "Conv" and 16 in [each.i for each in node.attribute if each.name == "group"]
        ]
        gathers.append(sources[groups.input[1]].op_type == "Gather")
    assert gathers == [False, True]
