"""Outputs that no input changes: a comparison with them cannot fail, and rounding must not make one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from exporters.verification.constant import OutputRows
from exporters.verification.result import VerificationError
from tests.exporters.models import verified, written
from tests.exporters.reduced_presets import filled
from tests.zoo.tiny import gpt2
from zoo.core.tensors import weight_tensors


@pytest.mark.parametrize(
    ("rows", "constant"),
    [
        ([[0.0, 0.0], [0.0, 0.0]], True),
        ([[1.0, 2.0], [1.0, 2.0]], True),  # only the position in the row tells the numbers apart
        ([[1.0, 2.0], [1.0, 2.0001]], False),
        ([[1e-7, 0.0], [-1e-7, 0.0]], True),  # within the tolerance, which is absolute below 1
        ([[1.0, 2.0]], False),  # a single row shows no change
    ],
)
def test_an_output_is_constant_if_no_number_changes(rows: list[list[float]], constant: bool) -> None:
    assert OutputRows({"logits": torch.tensor(rows).double()}).constant(2e-5) == ("logits",) * constant


def faint(path: Path, scale: float) -> Path:
    """Write the weights of a model whose scores are small because its last norm is."""
    weights = {name: tensor.detach().clone() for name, tensor in weight_tensors(filled(gpt2()))}
    weights["decoder.final_norm.weight"] *= scale
    weights["decoder.final_norm.bias"] *= 0
    save_file(weights, path)
    return path


def test_an_output_that_rounding_makes_constant_fails(tmp_path: Path) -> None:
    origin = str(faint(tmp_path / "faint.safetensors", 1e-7))
    with pytest.raises(VerificationError, match=r"logits: the same for every input, because its values are"):
        written(gpt2(), tmp_path / "x", weights=origin, precision="fp16")
    assert not (tmp_path / "x").exists()


def test_an_output_that_no_input_changes_is_named(tmp_path: Path) -> None:
    origin = str(faint(tmp_path / "faint.safetensors", 0.0))
    verification = verified(gpt2(), tmp_path / "x", weights=origin).verification
    assert verification.constant == ("logits",)  # and not the keys and values, or the reduced model's outputs
