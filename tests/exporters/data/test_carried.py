"""Quantized checkpoints whose codes are carried into graphs: bit for bit, and refused where a bit is lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from exporters.export import export
from exporters.exported.load_export import load_export
from exporters.graph.quantization import matrix
from exporters.runtime.exported import open_export
from exporters.steps.manifest import Export
from exporters.steps.options import ExportOptions
from exporters.verification.result import VerificationError
from tests.exporters.data.carried_values import carried_values
from tests.exporters.verification.test_verification import operation
from tests.thinned import one_in
from tests.zoo.checkpoints.quantized_gguf import HALVES, SHAPES, write_quantized
from zoo.configs.importing import import_spec

MODULES = {
    "embedding.token": ("token_embd",),
    "head.vocabulary": ("token_embd",),
    "attention.query_key_value": ("blk.0.attn_q", "blk.0.attn_k", "blk.0.attn_v"),
    "attention.query_key": ("blk.0.attn_q", "blk.0.attn_k"),
    "attention.query": ("blk.0.attn_q",),
    "attention.key": ("blk.0.attn_k",),
    "attention.value": ("blk.0.attn_v",),
    "attention.output": ("blk.0.attn_output",),
    "feed_forward.gate": ("blk.0.ffn_gate",),
    "feed_forward.up": ("blk.0.ffn_up",),
    "feed_forward.down": ("blk.0.ffn_down",),
}
FOUR_BITS = ["Q4_0", "Q4_1", "Q4_K"]


def exported(path: Path, directory: Path, **options: Any) -> Export:
    spec = import_spec(path)
    return export(spec, directory, ExportOptions(weights=str(path), **options))


def equal_matrices(directory: Path, values: dict[str, Any]) -> set[str]:
    """The modules of the graph whose matrices are those of a checkpoint, to the last bit."""
    found = set()
    for name, got in carried_values(directory / "model.onnx"):
        module = name.removeprefix("decoder.blocks.0.").rpartition(".weight")[0]
        wanted = np.concatenate([values[part] for part in MODULES[module]])
        if np.array_equal(got, wanted):
            found.add(module)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "portable"])
@pytest.mark.parametrize("kind", HALVES)
def test_blocks_of_gguf_are_carried_bit_for_bit(kind: str, target: str, tmp_path: Path) -> None:
    values = write_quantized(tmp_path / "x.gguf", {"": kind, "token": "Q8_0"})
    precision = "int4" if kind in FOUR_BITS else "int8"
    written = exported(tmp_path / "x.gguf", tmp_path / "out", target=target, precision=precision)
    assert all(each.carried for each in written.manifest.quantized)
    assert sum(len(each.weights) for each in written.manifest.quantized) == len(SHAPES)
    assert written.verification is not None
    assert written.verification.worst_weight is not None
    assert written.verification.worst_weight.error == 0
    assert len(equal_matrices(tmp_path / "out", values)) == len(
        list(carried_values(tmp_path / "out/model.onnx"))
    )


@pytest.mark.parametrize(("target", "kind"), [
    ("cuda", "Q4_0"), ("cuda", "Q4_1"), ("cuda", "Q8_0"), ("tensorrt", "Q4_0"), ("tensorrt", "Q4_1"),
])  # fmt: skip
def test_float16_targets_carry_float16_scales(kind: str, target: str, tmp_path: Path) -> None:
    """TensorRT has blocks of 4 bits alone: its tables stay in 8 bits with one scale per row."""
    values = write_quantized(tmp_path / "x.gguf", {"": kind, "token": "Q8_0"})
    written = exported(tmp_path / "x.gguf", tmp_path / "out", target=target, precision="int8", verify=False)
    by_format = {each.format: each.carried for each in written.manifest.quantized}
    assert by_format == {kind: True, "Q8_0": target == "cuda"}
    found = equal_matrices(tmp_path / "out", values) - {"head.vocabulary", "embedding.token"}
    assert found >= {"attention.output", "feed_forward.gate", "feed_forward.up", "feed_forward.down"}
    assert len(found) == len(list(carried_values(tmp_path / "out/model.onnx"))) - 1


@pytest.mark.slow
def test_scales_beyond_float16_are_not_carried_to_float16_targets(tmp_path: Path) -> None:
    write_quantized(tmp_path / "x.gguf", {"": "Q4_K"})
    written = exported(tmp_path / "x.gguf", tmp_path / "out", target="cuda", precision="int4", verify=False)
    (found,) = written.manifest.quantized
    assert (found.carried, found.carried_by) == (False, ())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Q4_1", "Q5_1", "Q4_K"])
def test_tables_with_minima_are_looked_up(kind: str, tmp_path: Path) -> None:
    values = write_quantized(tmp_path / "x.gguf", {"": kind})
    written = exported(tmp_path / "x.gguf", tmp_path / "out", target="cpu", precision="int8")
    assert all(each.carried for each in written.manifest.quantized)
    found = equal_matrices(tmp_path / "out", values)
    assert found & {"embedding.token", "head.vocabulary"}


@pytest.mark.slow
def test_a_mixed_file_keeps_the_codes_that_the_precision_can_hold(tmp_path: Path) -> None:
    """As Q4_K_M: values and one more matrix in 6 bits."""
    path = tmp_path / "x.gguf"
    write_quantized(path, {"": "Q4_K", "attn_v": "Q6_K", "ffn_down": "Q6_K", "token": "Q6_K"})
    int4 = exported(path, tmp_path / "int4", target="cpu", precision="int4")
    found = {(each.format, each.carried, each.carried_by): each.weights for each in int4.manifest.quantized}
    assert found[("Q4_K", True, ("int8", "int4"))] == tuple(
        f"decoder.blocks.0.{name}.weight"
        for name in ("attention.query", "attention.key", "attention.output", "feed_forward.gate", "feed_forward.up")
    )  # fmt: skip
    assert found[("Q6_K", True, ("int8", "int4"))] == ("embedding.token.weight",)
    assert len(found[("Q6_K", False, ("int8",))]) == 2
    int8 = exported(path, tmp_path / "int8", target="cpu", precision="int8")
    assert all(each.carried for each in int8.manifest.quantized)


def test_an_export_of_carried_weights_is_read_back(tmp_path: Path) -> None:
    values = write_quantized(tmp_path / "x.gguf", {"": "Q4_1", "token": "Q8_0"})
    exported(tmp_path / "x.gguf", tmp_path / "out", target="cpu", precision="int4", verify=False)
    model = load_export(open_export(tmp_path / "out"))
    held = dict(model.named_parameters())["decoder.blocks.0.attention.query.weight"]
    assert torch.equal(held, torch.from_numpy(values["blk.0.attn_q"]))


# ------------------------------------------------------------------------------------------------ sabotage


def a_minimum_in_the_last_bit(patch: pytest.MonkeyPatch) -> None:
    original = matrix.QuantizedMatrix._tensors

    def changed(self: Any, part: Any) -> Any:
        if part.minima is not None:
            bits = part.minima.view(torch.int16).clone()
            bits[0, 0] ^= 1
            part = replace(part, minima=bits.view(torch.float16))
        return original(self, part)

    patch.setattr(matrix.QuantizedMatrix, "_tensors", changed)


def minima_of_the_next_row(patch: pytest.MonkeyPatch) -> None:
    original = matrix.QuantizedMatrix._tensors

    def changed(self: Any, part: Any) -> Any:
        rolled = part if part.minima is None else replace(part, minima=part.minima.roll(1, 0))
        return original(self, rolled)

    patch.setattr(matrix.QuantizedMatrix, "_tensors", changed)


def minima_subtracted(patch: pytest.MonkeyPatch) -> None:
    def op(write: Any, graph: Any, name: str, *inputs: Any, **attributes: Any) -> Any:
        made = [value.node.op if value is not None and value.node else "" for value in inputs]
        if name == "Add" and made in (["MatMulNBits", "MatMul"], ["MatMul", "MatMul"]):
            return write("Sub", *inputs)
        return write(name, *inputs, **attributes)

    operation(patch, op)


def half_of_the_lift(patch: pytest.MonkeyPatch) -> None:
    """Codes that count from the middle, with minima as if they counted from elsewhere."""

    def op(write: Any, graph: Any, name: str, *inputs: Any, **attributes: Any) -> Any:
        result = write(name, *inputs, **attributes)
        if name == "Mul" and any(value.name.startswith("constant/8") for value in inputs):
            return write("Mul", result, inputs[1])
        return result

    operation(patch, op)


@one_in(8)
@pytest.mark.parametrize("target", ["cpu", "portable"])
@pytest.mark.parametrize(
    "sabotage", [a_minimum_in_the_last_bit, minima_of_the_next_row, minima_subtracted, half_of_the_lift]
)
def test_sabotage_of_carried_weights_is_caught(
    sabotage: Any, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_quantized(tmp_path / "x.gguf", {"": "Q4_1", "token": "Q8_0"})
    sabotage(monkeypatch)
    with pytest.raises(VerificationError):
        exported(tmp_path / "x.gguf", tmp_path / "out", target=target, precision="int4")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_weights_rounded_for_their_inputs_are_not_reported_as_carried(tmp_path: Path) -> None:
    path, ids = tmp_path / "x.gguf", np.random.default_rng(1).integers(0, 96, 2000)
    write_quantized(path, {"": "Q4_K", "ffn_down": "Q6_K"})
    np.save(tmp_path / "ids.npy", ids)
    written = exported(
        path, tmp_path / "out", target="cpu", precision="int4", calibrate=tmp_path / "ids.npy", max_kl=1e3
    )
    assert written.manifest.calibrated_on is not None
    found = {(each.format, each.carried): len(each.weights) for each in written.manifest.quantized}
    assert found == {("Q4_K", True): len(SHAPES) - 1, ("Q6_K", False): 1}
