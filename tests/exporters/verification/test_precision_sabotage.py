"""Sabotage of what a precision adds to a graph: it is caught at the tolerance of float32, on any input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from exporters.export import export
from exporters.graph.quantization import matrix
from exporters.steps.options import ExportOptions
from exporters.verification import rounded_products
from exporters.verification.result import VerificationError
from tests.exporters.graph.test_precisions import INT4, wide
from tests.exporters.verification.test_verification import no_biases, operation
from tests.thinned import one_in
from tests.zoo.tiny import bert, gpt2
from zoo.weights.blocks import Blocks, Quantized

Patch = pytest.MonkeyPatch
Sabotage = Callable[[Patch], None]
Chosen = dict[str, Any]

ASYMMETRIC = {**INT4, "asymmetric": True}
INT8: dict[str, Any] = {"precision": "int8"}


def products_a_hundredth_too_large(patch: Patch) -> None:
    def op(write: Any, graph: Any, name: str, *inputs: Any, **attributes: Any) -> Any:
        result = write(name, *inputs, **attributes)
        if name not in ("MatMulNBits", "MatMulInteger"):
            return result
        wide_result = result if name == "MatMulNBits" else write("Cast", result, to=1)
        larger = write("Mul", wide_result, graph.constant(1.01, torch.float32))
        return larger if name == "MatMulNBits" else write("Cast", larger, to=6)

    operation(patch, op)


def no_zero_point_of_inputs(patch: Patch) -> None:
    def op(write: Any, graph: Any, name: str, *inputs: Any, **attributes: Any) -> Any:
        return write(name, *(inputs[:2] if name == "MatMulInteger" else inputs), **attributes)

    operation(patch, op)


def scale_of_inputs_left_out(patch: Patch) -> None:
    def op(write: Any, graph: Any, name: str, *inputs: Any, **attributes: Any) -> Any:
        made = [value.node.op if value is not None and value.node else "" for value in inputs]
        if name == "Mul" and made == ["DynamicQuantizeLinear", ""]:
            return inputs[1]
        return write(name, *inputs, **attributes)

    operation(patch, op)


def packed(patch: Patch, change: Callable[[Quantized], Quantized]) -> None:
    """Change codes, scales or zero points on their way to the file."""
    original = matrix.QuantizedMatrix._tensors
    patch.setattr(matrix.QuantizedMatrix, "_tensors", lambda self, part: original(self, change(part)))


def scales_three_hundredths_too_large(patch: Patch) -> None:
    packed(patch, lambda part: Quantized(part.codes, part.scales * 1.03, part.zeros))


def scales_of_the_next_row(patch: Patch) -> None:
    packed(patch, lambda part: Quantized(part.codes, part.scales.roll(1, 0), part.zeros))


def pairs_the_other_way_round(patch: Patch) -> None:
    def swapped(part: Quantized) -> Quantized:
        codes = part.codes.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
        return Quantized(codes, part.scales, part.zeros)

    packed(patch, swapped)


def zero_points_one_off(patch: Patch) -> None:
    packed(patch, lambda part: Quantized(part.codes, part.scales, part.zeros + 1))


def zero_points_of_the_next_row(patch: Patch) -> None:
    packed(patch, lambda part: Quantized(part.codes, part.scales, part.zeros.roll(1, 0)))


PORTABLE, CPU = {"target": "portable"}, {"target": "cpu"}
CASES: list[tuple[Sabotage, Any, Chosen]] = [
    (products_a_hundredth_too_large, gpt2, {**INT8, **CPU}),
    (products_a_hundredth_too_large, gpt2, {**INT4, **CPU}),
    (products_a_hundredth_too_large, bert, {**INT8, **PORTABLE}),
    (zero_points_of_the_next_row, gpt2, {**ASYMMETRIC, **CPU}),
    (zero_points_of_the_next_row, gpt2, {**ASYMMETRIC, **PORTABLE}),
    (no_zero_point_of_inputs, bert, {**INT8, **PORTABLE}),
    (no_zero_point_of_inputs, bert, {**INT8, **CPU}),
    (scale_of_inputs_left_out, bert, {**INT8, **PORTABLE}),
    (no_biases, gpt2, {**INT8, **CPU}),
    (no_biases, gpt2, {**INT4, **PORTABLE}),
    (no_biases, bert, {**INT8, **PORTABLE}),
    (no_biases, gpt2, {"precision": "fp16", **CPU}),
    (no_biases, gpt2, {"precision": "bf16", **CPU}),
    (scales_three_hundredths_too_large, gpt2, {**INT4, **CPU}),
    (scales_three_hundredths_too_large, bert, {**INT8, **PORTABLE}),
    (scales_of_the_next_row, gpt2, {**INT4, **CPU}),
    (pairs_the_other_way_round, gpt2, {**INT4, **CPU}),
    (pairs_the_other_way_round, gpt2, {**INT4, **PORTABLE}),
    (zero_points_one_off, gpt2, {**ASYMMETRIC, **CPU}),
]


@one_in(20)
@pytest.mark.parametrize(
    ("sabotage", "make", "options"),
    CASES,
    ids=[
        f"{sabotage.__name__}-{make.__name__}-{'-'.join(map(str, o.values()))}" for sabotage, make, o in CASES
    ],
)
def test_sabotage_of_a_precision_is_caught(
    sabotage: Sabotage, make: Any, options: Chosen, tmp_path: Path, monkeypatch: Patch
) -> None:
    sabotage(monkeypatch)
    with pytest.raises(VerificationError):
        export(wide(make), tmp_path / "x", ExportOptions(**options))
    assert not list(tmp_path.iterdir())


def test_a_kernel_that_adds_errors_of_its_own_is_caught(tmp_path: Path, monkeypatch: Patch) -> None:
    """As a kernel does whose sums saturate; here the expected rounding is finer than the runtime's."""
    original = rounded_products._rounded
    monkeypatch.setattr(
        rounded_products, "_rounded", lambda x, *, whole: 0.75 * x + 0.25 * original(x, whole=whole)
    )
    message = r"MatMulInteger.*: ONNX Runtime's error from rounding inputs to 8 bits is 4\.\d times the expected error"
    with pytest.raises(VerificationError, match=message):
        export(wide(bert), tmp_path / "x", ExportOptions(**INT8))


def test_weights_are_held_to_their_original_scale() -> None:
    """Rounding to nearest keeps the scale of a matrix well within what is allowed of a stored one."""
    rows = torch.randn(64, 64, generator=torch.Generator().manual_seed(1))
    for blocks in (Blocks(4, 32), Blocks(4, 64, symmetric=False), Blocks(8, None)):
        after = blocks.restore(blocks.quantize(rows), 64)
        assert abs(float((rows * after).sum() / rows.square().sum()) - 1) < 0.01
