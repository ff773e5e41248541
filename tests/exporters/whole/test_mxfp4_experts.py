"""Experts of GPT-OSS in MXFP4, whose codes and exponents an export for CUDA keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi import _pybind_state
from safetensors.torch import load_file, save_file
from transformers import GptOssConfig, GptOssForCausalLM
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

from cli.tables.export_tables import quantized_lines
from exporters.export import export
from exporters.exported.verify_export import verify_export
from exporters.graph.quantization import mxfp4_matrix
from exporters.graph.quantization.interleaved import InterleavedMatrix
from exporters.runtime.exported import open_export
from exporters.steps.manifest import Export
from exporters.steps.options import ExportOptions
from exporters.target.providers import CUDA
from exporters.verification.exact.emulated import emulated_file
from exporters.verification.exact.graph import exact_file
from exporters.verification.result import EMULATED, VerificationError
from specs.base.errors import UserError
from tests.zoo.checkpoints.gpt_oss_checkpoint import EXPERTS, write_gpt_oss
from tests.zoo.filled import stored_model
from zoo.configs.importing import import_spec
from zoo.packed import mxfp4
from zoo.record.certificate import certify
from zoo.weights.source import WeightError

Array = NDArray[Any]
LAYER = "model.layers.0.mlp.experts"


def exported(checkpoint: Path, **options: Any) -> Export:
    """An export for CUDA, next to the checkpoint."""
    chosen = {"target": "cuda", "precision": "int4", **options}
    if chosen["precision"] == "int4":
        chosen["rounding"] = "nearest"
    return export(
        import_spec(checkpoint),
        checkpoint.with_name("out"),
        ExportOptions.of(weights=str(checkpoint), **chosen),
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, torch.Tensor], Export]:
    """The tensors of a checkpoint, and its export."""
    folder = tmp_path_factory.mktemp("float-experts")
    return write_gpt_oss(folder / "x"), exported(folder / "x")


def mixture(directory: Path) -> tuple[dict[str, Any], dict[int, Array]]:
    """The attributes of the first QMoE of a graph, and its weights by the index of the input."""
    model = onnx.load(directory / "model.onnx")
    node = next(node for node in model.graph.node if node.op_type == "QMoE")
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    held = {}
    for index, name in enumerate(node.input):
        if name in weights:
            tensor = weights[name]
            if tensor.data_type == TensorProto.FLOAT8E8M0:  # as bytes
                tensor.data_type = TensorProto.UINT8
            held[index] = numpy_helper.to_array(tensor)
    return {part.name: helper.get_attribute_value(part) for part in node.attribute}, held


def test_the_file_holds_the_codes_and_exponents_of_the_checkpoint(
    written: tuple[dict[str, torch.Tensor], Export],
) -> None:
    tensors, made = written
    _, held = mixture(made.directory)
    for name, codes, scales, bias, factors in (("gate_up_proj", 2, 3, 4, 15), ("down_proj", 5, 6, 7, 16)):
        blocks, exponents = (tensors[f"{LAYER}.{name}_{part}"] for part in ("blocks", "scales"))
        count, rows, _ = exponents.shape
        assert np.array_equal(held[scales], exponents.numpy())
        whole = convert_moe_packed_tensors(blocks, exponents, dtype=torch.float32)
        assert np.array_equal(values_of(held[codes], held[scales]), whole.numpy())
        packed = [
            _pybind_state.pack_fp4_weights_for_cuda_moe_gemm(matrix, rows, 2 * matrix.shape[1])
            for matrix in blocks.reshape(count, rows, -1).numpy()
        ]  # ONNX Runtime's own
        assert np.array_equal(held[codes], np.stack(packed).view(np.uint8).reshape(held[codes].shape))
        assert np.array_equal(held[bias], tensors[f"{LAYER}.{name}_bias"].half().numpy())
        assert np.array_equal(held[factors], np.ones(EXPERTS, np.float32))


def values_of(codes: Array, exponents: Array) -> Array:
    """Experts E K N of two rows' codes in a byte, E K N/2, the first in the lower bits, and exponents plus 127, E N K/32."""
    magnitudes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
    apart = np.stack((codes & 15, codes >> 4), -1).reshape(*codes.shape[:2], -1)
    signed = magnitudes[apart & 7] * np.where(apart & 8, -1, 1).astype(np.float32)
    powers = np.repeat(np.exp2(exponents.astype(np.float32) - 127), 32, -1)
    return signed * powers.swapaxes(1, 2)


def test_attributes_are_those_of_gpt_oss(written: tuple[dict[str, torch.Tensor], Export]) -> None:
    attributes, _ = mixture(written[1].directory)
    assert attributes["quant_type"] == b"fp4"
    assert (attributes["expert_weight_bits"], attributes["block_size"]) == (4, 32)
    assert (attributes["k"], attributes["normalize_routing_weights"]) == (2, 1)
    assert (attributes["activation_type"], attributes["swiglu_fusion"]) == (b"swiglu", 1)
    assert attributes["activation_alpha"] == pytest.approx(1.702)
    assert (attributes["activation_beta"], attributes["swiglu_limit"]) == (1.0, 7.0)


def test_records_say_which_kernel_has_not_run(written: tuple[dict[str, torch.Tensor], Export]) -> None:
    _, made = written
    (found,) = made.manifest.quantized
    assert (found.format, found.carried, len(found.weights)) == ("MXFP4", True, 6)
    assert made.manifest.providers == (CUDA,)
    graph = made.manifest.graphs["model.onnx"]
    assert graph.placement is not None
    assert (graph.placement.on_cpu, graph.ir_version) == ({}, 12)
    assert made.verification is not None
    assert (made.verification.ran, made.verification.not_run) == (EMULATED, CUDA)
    assert made.verification.worst_weight is not None
    assert "experts" not in made.verification.worst_weight.name
    build = json.loads((made.directory / "build.json").read_text())
    assert build["verification"]["ran"] == EMULATED


def test_the_cpu_provider_is_refused_by_name(written: tuple[dict[str, torch.Tensor], Export]) -> None:
    _, made = written
    with pytest.raises(UserError) as caught:
        open_export(made.directory, "cpu").open(0)
    message = str(caught.value)
    assert (
        "its experts are 4-bit floats (MXFP4), which only CUDAExecutionProvider reads\n  value: CPU"
        in message
    )
    assert "GPU of compute capability 8.0 or later, or export the model with target cpu" in message.replace(
        "--", ""
    )


def test_the_recorded_case_is_left_to_cuda(written: tuple[dict[str, torch.Tensor], Export]) -> None:
    _, made = written
    named = certify(made.directory, "cpu")
    assert not named.passed
    assert (named.faults, named.note) == ([], "Only CUDAExecutionProvider runs its graphs.")
    found = certify(made.directory)
    assert found.passed or found.note.startswith("Only CUDAExecutionProvider runs its graphs")


def test_an_export_is_read_back_and_verified_again(written: tuple[dict[str, torch.Tensor], Export]) -> None:
    again = verify_export(written[1].directory)
    assert again.verification is not None
    assert again.verification.passed
    assert again.verification.ran == EMULATED


def test_the_model_computes_what_transformers_computes(tmp_path: Path) -> None:
    tensors = write_gpt_oss(tmp_path / "x")
    stated = json.loads((tmp_path / "x/config.json").read_text())
    del stated["quantization_config"]
    state = {name: values.float() for name, values in tensors.items() if values.dtype != torch.uint8}
    for name in [name.removesuffix("_blocks") for name in tensors if name.endswith("_blocks")]:
        state[name] = convert_moe_packed_tensors(
            tensors[f"{name}_blocks"], tensors[f"{name}_scales"], dtype=torch.float32
        )
    reference = GptOssForCausalLM(GptOssConfig(**stated)).eval()
    reference.load_state_dict(state)
    spec = import_spec(tmp_path / "x")
    model = stored_model(spec, tmp_path / "x")
    tokens = torch.randint(0, 64, (2, 12), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        torch.testing.assert_close(
            model.eval()(tokens).logits, reference(tokens).logits, rtol=1e-4, atol=1e-4
        )


# ------------------------------------------------------------------------------------------------- sabotage


def swapped_in_pairs(codes: torch.Tensor) -> torch.Tensor:
    return codes[..., 1::2] | (codes[..., 0::2] << 4)


def swapped_apart(packed: torch.Tensor) -> torch.Tensor:
    return torch.stack((packed >> 4, packed & 15), -1).flatten(-2)


def swap_nibbles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mxfp4_matrix, "in_pairs", swapped_in_pairs)
    monkeypatch.setattr(mxfp4_matrix, "apart", swapped_apart)


def gates_before_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows of the gate precede those of up, when they are written and when they are read back."""
    written, read = InterleavedMatrix.parts, mxfp4_matrix.Mxfp4Matrix.restored

    def parts(self: InterleavedMatrix, source: Any) -> Any:
        count = len(self.names)
        order = torch.arange(count * self.rows).view(self.rows, count).t().flatten()
        yield from (part.rows(order) for part in written(self, source))

    def restored(self: mxfp4_matrix.Mxfp4Matrix, tensors: Any) -> torch.Tensor:
        rows = read(self, tensors).view(len(self.names), -1, self.rows, self.width)
        turned = rows.permute(1, 2, 0, 3).reshape(-1, len(self.names), self.rows, self.width)
        return turned.transpose(0, 1).flatten()

    monkeypatch.setattr(mxfp4_matrix.Mxfp4Matrix, "parts", parts)
    monkeypatch.setattr(mxfp4_matrix.Mxfp4Matrix, "restored", restored)


@pytest.mark.parametrize("sabotage", [swap_nibbles, pytest.param(gates_before_ups, marks=pytest.mark.slow)])
def test_another_order_of_codes_is_caught(
    sabotage: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order is the same when the file is read back, so that only its meaning for QMoE is wrong."""
    write_gpt_oss(tmp_path / "x")
    sabotage(monkeypatch)
    with pytest.raises(VerificationError, match="differs from the PyTorch model"):
        exported(tmp_path / "x")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_budget_gives_bits_to_all_but_the_experts_that_are_carried(tmp_path: Path) -> None:
    write_gpt_oss(tmp_path / "x")
    made = exported(tmp_path / "x", budget="4.6bits")
    mixed = made.manifest.mixed
    assert mixed is not None
    assert 4.5 < mixed.bits_per_weight <= 4.6
    assert mixed.size == (made.directory / "model.onnx.data").stat().st_size
    assert any(group.raised for group in mixed.groups)
    assert not any("experts" in name for group in mixed.groups for name in group.weights)
    assert carried(made)


# -------------------------------------------------------------------------------------- what is not carried


def carried(made: Export) -> bool:
    (found,) = made.manifest.quantized
    assert found.format == "MXFP4"
    return found.carried


def test_targets_without_a_kernel_round_anew_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_gpt_oss(tmp_path / "x")
    monkeypatch.delattr(mxfp4._Experts, "_fit_half")  # no other target asks for the range of the exponents
    made = exported(tmp_path / "x", target="cpu", verify=False)
    assert list(quantized_lines(made.manifest)) == [
        ("6 MXFP4 weights: dequantized, then stored as int4 (only --target cuda has a kernel for their codes)", False)
    ]  # fmt: skip
    assert "CPUExecutionProvider" in made.manifest.providers
    assert not carried(made)


@pytest.mark.parametrize(
    "change", [{"hidden": 96}, {"exponents": (121, 143)}], ids=["half a tile", "beyond float16"]
)
def test_experts_that_the_kernels_do_not_take_are_dequantized(change: dict[str, Any], tmp_path: Path) -> None:
    write_gpt_oss(tmp_path / "x", **change)
    assert not carried(exported(tmp_path / "x", verify=False))


def test_a_float_precision_dequantizes(tmp_path: Path) -> None:
    write_gpt_oss(tmp_path / "x")
    made = exported(tmp_path / "x", precision="fp16", verify=False)
    assert not carried(made)
    assert made.manifest.quantized[0].carried_by == ("int8", "int4")


def test_experts_are_never_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_gpt_oss(tmp_path / "x")

    def whole(*_: Any) -> None:
        raise AssertionError("all experts were dequantized at once")

    monkeypatch.setattr(mxfp4._Experts, "_values", whole)
    assert carried(exported(tmp_path / "x", verify=False))


# --------------------------------------------------------------------------------------------------- damage


@pytest.mark.parametrize(
    ("leaf", "change", "message"),
    [
        ("blocks", None, "gate_up_proj_scales"),
        ("scales", None, "gate_up_proj_scales is missing next to"),
        ("scales", lambda scales: scales[..., 1:], "gate_up_proj_scales must be 4 x 256 x 2: "),
        ("scales", lambda scales: scales.float(), "gate_up_proj_scales must be U8"),
        ("blocks", lambda blocks: blocks[..., 1:], "gate_up_proj_blocks must be 4 x 256 x 2 x 16: "),
        ("scales", lambda scales: torch.full_like(scales, 255), "gate_up_proj has NaN or infinite values"),
    ],
)
def test_damaged_experts_are_named(leaf: str, change: Any, message: str, tmp_path: Path) -> None:
    write_gpt_oss(tmp_path / "x")
    file = tmp_path / "x/model.safetensors"
    tensors = load_file(file)
    name = f"{LAYER}.gate_up_proj_{leaf}"
    part = tensors.pop(name)
    save_file(tensors if change is None else {**tensors, name: change(part).contiguous()}, file)
    with pytest.raises(WeightError) as caught:
        exported(tmp_path / "x")
    assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


# ------------------------------------------------------------------------------------------------ emulation


def test_the_emulation_multiplies_by_the_factor_of_each_expert(tmp_path: Path) -> None:
    """Two experts with factors 2 and 3, a code and an exponent for each value, and an exponent of 0 for zeros."""
    import onnxruntime

    generator = np.random.default_rng(1)
    codes = generator.integers(0, 256, (2, 64, 32), np.uint8)
    exponents = generator.integers(120, 126, (2, 64, 2), np.uint8)
    factors = np.array([2, 3], np.float32)
    x, scores = generator.standard_normal((5, 64), np.float32), generator.standard_normal((5, 2), np.float32)
    names = ["x", "scores", "up", "up_scale", "", "down", "down_scale", *[""] * 8, "factors", "factors"]
    node = helper.make_node(
        "QMoE", names, ["y"], domain="com.microsoft", k=1, normalize_routing_weights=1, quant_type="fp4",
        expert_weight_bits=4, block_size=32, activation_type="relu",
    )  # fmt: skip
    weights = [numpy_helper.from_array(codes, name) for name in ("up", "down")]
    weights.append(numpy_helper.from_array(factors, "factors"))
    for name in ("up_scale", "down_scale"):
        scale = numpy_helper.from_array(exponents, name)
        scale.data_type = TensorProto.FLOAT8E8M0
        weights.append(scale)
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [5, width])
        for name, width in (("x", 64), ("scores", 2))
    ]
    graph = helper.make_graph(
        [node], "mixed", values, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [5, 64])], weights
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=12)
    onnx.save(model, tmp_path / "x.onnx", save_as_external_data=True, location="x.data", size_threshold=100)
    matrices = values_of(codes, exponents) * factors[:, None, None]
    wanted = [
        np.maximum(row @ matrices[best], 0) @ matrices[best]
        for row, best in zip(x, scores.argmax(-1), strict=True)
    ]
    for form in (exact_file(tmp_path / "x.onnx"), emulated_file(tmp_path / "x.onnx", torch.float32)):
        with form as file:
            session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        (mixed,) = session.run(None, {"x": x, "scores": scores})
        np.testing.assert_allclose(mixed, wanted, rtol=1e-5, atol=1e-3)
    assert {file.name for file in tmp_path.iterdir()} == {"x.onnx", "x.data"}
