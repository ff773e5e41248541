"""Target webgpu: what the provider has kernels for, in what it computes well, within its limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
import torch

from exporters.export import export
from exporters.graph.precisions import PRECISIONS
from exporters.steps.graphs import Graphs
from exporters.steps.options import ExportOptions
from exporters.steps.plan import Plan
from exporters.target.kernels.placement import placement
from exporters.target.kernels.table import table_of
from exporters.target.providers import WEBGPU
from exporters.target.targets import OPERATIONS, TARGETS
from specs.base.errors import UserError
from specs.language.load import load
from specs.model.model import Model
from tests.exporters.graphs import Module, graph_of
from tests.thinned import one_in
from tests.zoo.tiny import bert, gpt2, t5

TARGET = TARGETS["webgpu"]
PRECISE = [name for name in PRECISIONS if name not in TARGET.unsupported_precisions]


def llama() -> Model:
    """A decoder with rotated positions and two query heads to a key, 64 wide."""
    return load(
        "tiny-gpt",
        [
            "decoder.layers=1",
            "vocab_size=96",
            "context_length=64",
            "position={kind: rope}",
            "decoder.block.attention={kind: grouped_query, heads: 4, kv_heads: 2}",
        ],
    )


def test_every_fused_operation_has_a_kernel() -> None:
    table = table_of(WEBGPU)
    assert table is not None
    assert table.source == "onnxruntime-ep-webgpu 0.4.0 with onnxruntime 1.31.1"
    names = {torch.float32: "float", torch.float16: "float16"}
    for name, dtypes in TARGET.operations.items():
        for dtype in dtypes:
            known = OPERATIONS[name]
            assert table.computes(name, 20, [], [names[dtype]], known.domain), (name, dtype)


@one_in(3)
@pytest.mark.parametrize("precision", PRECISE)
@pytest.mark.parametrize("spec", [bert, gpt2, t5, llama])
def test_the_processor_gets_integers_alone(spec: Callable[[], Model], precision: str) -> None:
    table = table_of(WEBGPU)
    assert table is not None
    for model in (
        Graphs.of(Plan.make(spec(), ExportOptions.of(target="webgpu", precision=precision)))
        .messages()
        .values()
    ):
        left = placement(model, table).on_cpu
        assert all("(int64)" in name for name in left), left


@one_in(6)
@pytest.mark.parametrize("precision", PRECISE)
def test_a_decoder_is_verified_in_every_precision(precision: str, tmp_path: Path) -> None:
    found = export(
        llama(), tmp_path / "out", ExportOptions.of(target="webgpu", precision=precision, layout="genai")
    )
    assert found.verification is not None
    assert found.verification.passed
    stated = onnx.load(tmp_path / "out" / "model.onnx", load_external_data=False)
    caches = [value for value in stated.graph.output if value.name.startswith("present.")]
    floats = {value.type.tensor_type.elem_type for value in caches}
    half = precision in ("fp16", "q4f16")
    assert floats == {onnx.TensorProto.FLOAT16 if half else onnx.TensorProto.FLOAT}
    assert '"webgpu": {}' in (tmp_path / "out" / "genai_config.json").read_text()


def test_padding_is_a_bias_of_attention() -> None:
    (model,) = Graphs.of(Plan.make(bert(), ExportOptions(target="webgpu"))).messages().values()
    attentions = [node for node in model.graph.node if node.op_type == "MultiHeadAttention"]
    assert attentions
    assert all(not node.input[4] and node.input[5] for node in attentions)


@pytest.mark.parametrize("precision", ["int4", "q4f16"])
def test_transformers_js_finds_four_bits_by_its_own_names(precision: str, tmp_path: Path) -> None:
    export(
        bert(),
        tmp_path / "out",
        ExportOptions.of(target="webgpu", precision=precision, layout="transformers-js", verify=False),
    )
    suffix = {"int4": "q4", "q4f16": "q4f16"}[precision]
    assert (tmp_path / "out" / "onnx" / f"model_{suffix}.onnx").exists()
    assert f'"dtype": "{suffix}"' in (tmp_path / "out" / "config.json").read_text()


def test_products_in_four_bits_round_their_inputs() -> None:
    spec = llama()
    (model,) = (
        Graphs.of(Plan.make(spec, ExportOptions(target="webgpu", precision="int4"))).messages().values()
    )
    levels = [
        attribute.i
        for node in model.graph.node
        if node.op_type == "MatMulNBits"
        for attribute in node.attribute
        if attribute.name == "accuracy_level"
    ]
    assert levels
    assert set(levels) == {4}


@pytest.mark.parametrize(
    ("target", "precision", "reason"),
    [
        ("webgpu", "bf16", "WebGPU has no bfloat16\n  Use fp32, fp16, int8, int4 or q4f16."),
        ("cuda", "q4f16", "its int4 is float16 elsewhere already\n  Use fp32, fp16, bf16, int8 or int4."),
    ],
)
def test_precisions_that_a_target_lacks_are_refused(target: str, precision: str, reason: str) -> None:
    with pytest.raises(UserError) as caught:
        ExportOptions.of(target=target, precision=precision)
    assert str(caught.value) == f"target {target} does not support precision {precision}\n  {reason}"


def test_a_weight_that_no_buffer_holds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, "webgpu", replace(TARGET, largest_tensor=20_000))
    with pytest.raises(UserError) as caught:
        export(llama(), tmp_path / "out", ExportOptions(target="webgpu"))
    assert str(caught.value) == (
        "target webgpu holds no tensor of more than 20.0 kB\n"
        "  value: decoder.blocks.0.feed_forward.down.weight has 65.5 kB in fp32\n"
        "  Use a precision of fewer bits."
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("function", [torch.sin, torch.cos])
def test_sines_need_no_kernel_of_the_target(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    model = graph_of(Module(function), "f B T", target="webgpu")
    written = ir.to_proto(model)
    assert not {"Sin", "Cos"} & {node.op_type for node in written.graph.node}
    session = onnxruntime.InferenceSession(written.SerializeToString(), providers=["CPUExecutionProvider"])
    generator = torch.Generator().manual_seed(0)
    for largest in (1.0, 100.0, 1e5, 8e5):
        angles = (torch.rand(4, 500, generator=generator) * 2 - 1) * largest
        (found,) = session.run(None, {"x0": angles.numpy()})
        wanted = function(angles.double()).numpy()
        assert np.abs(found - wanted).max() < 3e-7


def test_cross_attention_appends_nothing_to_its_cache() -> None:
    plan = Plan.make(t5(), ExportOptions(target="webgpu", layout="transformers-js"))
    merged = Graphs.of(plan).messages()["onnx/decoder_model_merged.onnx"]
    attentions = [node for node in merged.graph.node if node.op_type == "MultiHeadAttention"]
    crossing = [node for node in attentions if "cross_attention" in node.name]
    assert crossing
    assert all(len(node.input) < 7 or not node.input[6] for node in crossing)
