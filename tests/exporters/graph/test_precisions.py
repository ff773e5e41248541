"""Exports in every precision: written, verified, as small as they say, and refused where they fail."""

from __future__ import annotations

import json
from collections import namedtuple
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from safetensors.torch import save_file

from exporters.export import export
from exporters.graph import fusing
from exporters.graph.precisions import PRECISIONS
from exporters.steps.options import ExportOptions
from exporters.verification.result import VerificationError
from specs.base.errors import UserError
from specs.model.model import Model
from tests.exporters.models import verified
from tests.thinned import one_in
from tests.zoo.filled import random_model, stored_model
from tests.zoo.tiny import bert, gpt2, t5
from zoo.weights.blocks import Blocks

Patch = pytest.MonkeyPatch
INT4: dict[str, Any] = {"precision": "int4"}
PRECISE: list[dict[str, Any]] = [
    {"precision": "fp16"},
    {"precision": "bf16"},
    {"precision": "int8"},
    INT4,
    {**INT4, "block_size": 64, "asymmetric": True},
]


def wide(make: Any, hidden: int = 96, **changes: Any) -> Model:
    """A small model with matrices that are worth quantizing."""
    data = make().model_dump(exclude={"expect"})
    for stack in ("encoder", "decoder"):
        if data[stack]:
            data[stack]["block"]["feed_forward"]["hidden"] = hidden
    return make(**{**data, "d_model": 64, "vocab_size": 100, "context_length": 24, **changes})


def operations(directory: Path, name: str = "model.onnx") -> list[str]:
    """The operations of a graph, which the checker of ONNX passes, as does inference of its shapes."""
    onnx.checker.check_model(directory / name)
    graph = onnx.load(directory / name, load_external_data=False)
    onnx.shape_inference.infer_shapes(graph, check_type=True, strict_mode=not graph.opset_import[1:])
    return [node.op_type for node in graph.graph.node]


@one_in(10)
@pytest.mark.parametrize("options", PRECISE, ids=["-".join(map(str, o.values())) for o in PRECISE])
@pytest.mark.parametrize("target", ["portable", "cpu"])
@pytest.mark.parametrize("make", [bert, gpt2, pytest.param(t5, marks=pytest.mark.slow)])
def test_every_precision_of_every_architecture_is_verified(
    make: Any, target: str, options: dict[str, Any], tmp_path: Path
) -> None:
    result = verified(wide(make), tmp_path / "x", target=target, **options)
    verification = result.verification
    assert result.manifest.precision == verification.precision == options["precision"]
    assert not verification.in_rounding
    assert verification.worst_weight is not None
    assert 0 < verification.worst_weight.error < verification.worst_weight.limit
    assert ("rounded to bfloat16" in verification.ran) == (options["precision"] == "bf16")
    if make is not bert:
        assert verification.top_token is not None
        assert verification.top_token > (0.8 if options["precision"] == "int4" else 0.9)  # of some 18 tokens
    for name in result.graphs:
        assert operations(tmp_path / "x", name)


def test_files_are_as_small_as_their_precision(tmp_path: Path) -> None:
    spec = wide(gpt2, hidden=256, vocab_size=1000)
    sizes = {}
    for name in ("fp32", "fp16", "bf16", "int8", "int4"):
        result = export(spec, tmp_path / name, ExportOptions(precision=name, target="cpu", verify=False))
        sizes[name] = result.files["model.onnx.data"]
    small = {name: size / sizes["fp32"] for name, size in sizes.items()}
    assert small["fp16"] == pytest.approx(0.5, abs=0.02)
    assert small["bf16"] == pytest.approx(small["fp16"], abs=0.01)
    assert small["int8"] == pytest.approx(
        0.27, abs=0.03
    )  # position tables, norms and biases stay as they are
    assert small["int4"] < 0.25


def test_a_disk_is_to_hold_the_export_not_the_model(tmp_path: Path, monkeypatch: Patch) -> None:
    spec = wide(gpt2, hidden=256, vocab_size=1000)
    options: dict[str, Any] = {"target": "cpu", "verify": False}
    needed = export(spec, tmp_path / "x", ExportOptions(**INT4, **options)).files["model.onnx.data"]
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage(10**12, 0, needed))
    export(spec, tmp_path / "x", ExportOptions(**INT4, **options))
    for short, precision in ((needed - 1, "int4"), (needed, "fp16")):
        monkeypatch.setattr("shutil.disk_usage", lambda path, short=short: usage(10**12, 0, short))
        with pytest.raises(UserError, match="and its disk has"):
            export(spec, tmp_path / "y", ExportOptions.of(precision=precision, **options))


def test_a_tied_table_is_stored_once_and_read_by_both(tmp_path: Path) -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        ("cpu", {}),
        ("portable", {}),
        ("cpu", {"head_precision": "int4"}),
    ]
    for target, options in cases:
        tied = wide(gpt2, vocab_size=5000)
        result = export(tied, tmp_path / "x", ExportOptions(target=target, verify=False, **INT4, **options))
        table = 5000 * 64 // (2 if options else 1)
        assert table < result.files["model.onnx.data"] < 1.6 * table


@pytest.mark.slow
def test_a_graph_for_processors_has_the_fast_operations(tmp_path: Path) -> None:
    verified(wide(gpt2), tmp_path / "x", target="cpu", precision="int8")
    ops = operations(tmp_path / "x")
    assert ops.count("GatherBlockQuantized") == 1
    assert (
        ops.count("MatMulNBits") == 2 * 4 + 1
    )  # packed queries, keys and values, the output, two layers; the head
    verified(wide(bert), tmp_path / "x", target="cpu", precision="int8")
    assert operations(tmp_path / "x").count("MatMulInteger") == 2 * 4


def test_the_encoder_of_a_model_that_generates_rounds_inputs_with_outliers_in_blocks(tmp_path: Path) -> None:
    export(wide(t5), tmp_path / "x", ExportOptions(target="cpu", precision="int8", verify=False))
    ops = operations(tmp_path / "x", "encoder_model.onnx")
    assert ops.count("MatMulNBits") == 2 * 2  # the last matrices of attention and of feed-forwards
    assert ops.count("MatMulInteger") > 2 * 2


def test_on_gpus_unquantized_weights_are_float16(tmp_path: Path) -> None:
    result = verified(wide(gpt2), tmp_path / "x", target="cuda", **INT4)
    graph = onnx.load(tmp_path / "x" / "model.onnx", load_external_data=False).graph
    kinds = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)}
    assert kinds["past_key_values.0.key"] == kinds["present.0.key"] == onnx.TensorProto.FLOAT16
    assert kinds["logits"] == onnx.TensorProto.FLOAT
    assert result.manifest.precision == "int4"


def test_half_precision_norms_are_stored_in_their_compute_dtype(tmp_path: Path) -> None:
    verified(wide(gpt2), tmp_path / "x", precision="fp16")
    graph = onnx.load(tmp_path / "x" / "model.onnx", load_external_data=False).graph
    kinds = {weight.name: weight.data_type for weight in graph.initializer}
    assert kinds["decoder.final_norm.weight.float32"] == onnx.TensorProto.FLOAT
    assert kinds["decoder.blocks.0.attention.output.weight"] == onnx.TensorProto.FLOAT16


def blown_up(spec: Model, path: Path) -> Path:
    """Weights of a T5 whose feed-forwards give more than float16 can say."""
    model = random_model(spec)
    gains = {"down": 3000.0, "up": 20.0}
    weights = {
        name: tensor.detach() * gains.get(name.split(".")[-2], 1.0)
        for name, tensor in model.named_parameters()
    }
    save_file(weights, path)
    return path


GATED = {"kind": "gated", "hidden": 96, "activation": "gelu_tanh", "bias": False}


@pytest.mark.slow
@pytest.mark.parametrize("gated", [False, True])
def test_a_t5_that_overflows_float16_does_not(gated: bool, tmp_path: Path, monkeypatch: Patch) -> None:
    spec = wide(t5)
    if gated:
        data = spec.model_dump(exclude={"expect"})
        for stack in ("encoder", "decoder"):
            data[stack]["block"]["feed_forward"] = GATED
        spec = Model.model_validate(data)
    weights = str(blown_up(spec, tmp_path / "model.safetensors"))
    half = stored_model(spec, weights, dtype=torch.float16)
    ids = torch.arange(8)[None]
    assert not bool(torch.isfinite(half(ids, ids).logits).all())
    verified(spec, tmp_path / "x", precision="fp16", weights=weights, target="cuda")
    monkeypatch.setattr(fusing, "widen", lambda rewriter: None)
    with pytest.raises(
        VerificationError, match=r"not finite[^$]*down gives values up to .*, but float16 holds at most 6.6e"
    ):
        export(spec, tmp_path / "y", ExportOptions(precision="fp16", weights=weights))
    assert not (tmp_path / "y").exists()


def test_a_weight_too_large_for_float16_is_named(tmp_path: Path) -> None:
    spec = wide(bert)
    model = random_model(spec)
    weights = {name: tensor.detach().clone() for name, tensor in model.named_parameters()}
    weights["encoder.blocks.1.feed_forward.up.weight"][3, 5] = 1e5
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(VerificationError) as caught:
        export(
            spec, tmp_path / "x", ExportOptions(precision="fp16", weights=str(tmp_path / "model.safetensors"))
        )
    assert "encoder.blocks.1.feed_forward.up.weight is stored incorrectly: its error is inf%" in str(
        caught.value
    )


def test_a_quantizer_that_rounds_badly_fails_the_build(tmp_path: Path, monkeypatch: Patch) -> None:
    original = Blocks.quantize

    def coarse(blocks: Blocks, rows: torch.Tensor, dtype: torch.dtype = torch.float32) -> Any:
        return original(blocks, rows * (1 + (rows.shape[1] == 96)), dtype)

    monkeypatch.setattr(Blocks, "quantize", coarse)
    with pytest.raises(
        VerificationError, match=r"feed_forward\.down\.weight is stored incorrectly: its error is 1\d\d\."
    ):
        export(wide(gpt2), tmp_path / "x", ExportOptions(**INT4))
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_one_tolerance_holds_in_every_precision(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr("exporters.verification.compare.TOLERANCE", 1e-12)
    monkeypatch.setattr("exporters.verification.compare.ROUNDING", 0)
    for precision in PRECISIONS:
        with pytest.raises(VerificationError, match="differs from the PyTorch model"):
            export(wide(gpt2), tmp_path / "x", ExportOptions.of(precision=precision))


def test_the_manifest_records_the_comparison(tmp_path: Path) -> None:
    verified(wide(gpt2), tmp_path / "x", target="cpu", **INT4)
    manifest = json.loads((tmp_path / "x" / "export.json").read_text())
    verification = json.loads((tmp_path / "x" / "build.json").read_text())["verification"]
    assert manifest["precision"] == verification["precision"] == "int4"
    assert verification["worst_weight"]["error"] < 0.25
    assert any(comparison["moved"] > 0 for comparison in verification["comparisons"])
    graph = onnx.load(tmp_path / "x" / "model.onnx", load_external_data=False)
    assert {entry.key: entry.value for entry in graph.metadata_props}["zoo.core.precision"] == "int4"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "fp8"}, "precision 'fp8' is unknown\n  Choose from: fp32, fp16, bf16, int8, int4, q4f16."),
        ({"precision": "int4", "block_size": 48}, "block_size must be 32, 64 or 128\n  value: 48\n"),
        ({"precision": "int8", "block_size": 64}, "block_size applies only to precision int4 or q4f16\n  value: int8"),
        ({"asymmetric": True}, "asymmetric applies only to precision int4 or q4f16\n  value: fp32"),
        (
            {"precision": "fp16", "head_precision": "int4"},
            "head_precision applies only to precision int4 or q4f16\n  value: fp16",
        ),
        ({"precision": "int4", "head_precision": "int2"}, "head_precision 'int2' is unknown"),
        (
            {"precision": "int4", "head_precision": "int4"},
            "target portable supports no 4-bit embedding lookup\n  value: head_precision int4\n  Use head_precision int8, or target cpu or cuda or webgpu.",
        ),
        ({"precision": "fp16", "via": "torch"}, "via torch writes only fp32\n  value: fp16\n  Use via fx."),
    ],
)  # fmt: skip
def test_contradictory_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        ExportOptions(**options)
    assert str(caught.value).startswith(message)


@one_in(2)
@pytest.mark.parametrize(
    "head", [{"kind": "classification", "labels": 3, "pooling": "last"}, {"kind": "question_answering"}]
)
def test_a_decoder_without_a_vocabulary_is_verified_where_its_cache_is_at_the_front(
    head: dict[str, Any], tmp_path: Path
) -> None:
    verified(wide(gpt2, head=head), tmp_path / "x", target="cpu", precision="fp16")
