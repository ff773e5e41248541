"""Stacked experts of Model Optimizer, with the names, shapes and dtypes that its release 0.47 writes for GPT-OSS and Llama 4."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from tests.zoo.checkpoints.packed_checkpoints import Pack, float4, fp8, mxfp8
from zoo.packed.modelopt import read_modelopt
from zoo.weights.safetensors import read_safetensors
from zoo.weights.source import WeightError

EXPERTS, WIDTH, HIDDEN = 3, 256, 320
NAME = "model.layers.0.mlp.experts.gate_up_proj"


CASES: dict[str, tuple[Pack, bool]] = {
    "NVFP4": (float4("multiplied"), True),
    "W4A8_NVFP4_FP8": (float4("multiplied", 32), False),
    "mxfp4": (float4("exponents", 32), False),
    "MXFP8": (mxfp8, False),
    "FP8": (fp8("tensor"), True),
    "FP8_PER_CHANNEL_PER_TOKEN": (fp8("tensor"), True),
    "fp8_pb_wo": (fp8("tile", four_axes=True), False),
}
"""The packing of an expert by ``quant_algo``, and whether its rows are those of d_out, and are columns in the file."""


def stacked(algorithm: str) -> tuple[dict[str, Tensor], Tensor]:
    """The tensors of stacked experts, by their leaves, and their values E d_in d_out."""
    pack, turned = CASES[algorithm]
    generator = torch.Generator().manual_seed(1)
    rows, columns = (HIDDEN, WIDTH) if turned else (WIDTH, HIDDEN)
    made = [pack(rows, columns, generator) for _ in range(EXPERTS)]
    parts = {leaf: torch.stack([tensors[leaf] for tensors, _ in made]) for leaf in made[0][0]}
    values = torch.stack([values for _, values in made])
    if turned:
        parts = {leaf: part.mT if part.dim() == 3 else part for leaf, part in parts.items()}
        values = values.mT
    parts |= {leaf: parts[leaf][0] for leaf in ("weight_scale_2", "input_scale") if leaf in parts}
    if algorithm == "FP8":
        parts["weight_scale"] = parts["weight_scale"][0, 0]
        values = parts["weight"].float() * parts["weight_scale"]
    elif algorithm == "FP8_PER_CHANNEL_PER_TOKEN":
        parts["weight_scale"] = parts["weight_scale"].view(-1)
    elif algorithm == "fp8_pb_wo":  # its axes are those of the transposed matrix, in the order of this one
        high, wide = -(-WIDTH // 128), -(-HIDDEN // 128)
        parts["weight_scale"] = parts["weight_scale"].reshape(EXPERTS, wide, 1, high, 1)
    return parts, values


def read(parts: dict[str, Tensor], directory: Path) -> dict[str, Tensor | None]:
    named = {
        f"{NAME}{'' if leaf == 'weight' else '_' + leaf}": part.contiguous() for leaf, part in parts.items()
    }
    save_file(named, directory / "model.safetensors")
    config = {"quantization": {"quant_algo": "MIXED_PRECISION"}}
    found = read_modelopt(read_safetensors(directory / "model.safetensors"), config, "hf_quant_config.json")
    return {name: None if matrix is None else matrix.read() for name, matrix in found}


@pytest.mark.parametrize("algorithm", CASES)
def test_values_are_those_of_the_codes(algorithm: str, tmp_path: Path) -> None:
    parts, values = stacked(algorithm)
    found = read(parts, tmp_path)
    got = found.pop(NAME)
    assert got is not None
    assert got.is_contiguous()
    assert torch.equal(got, values)
    assert set(found) == {f"{NAME}_{leaf}" for leaf in parts if leaf != "weight"}
    assert set(found.values()) == {None}


def test_factors_of_inputs_are_left_for_the_report_of_unused_tensors(tmp_path: Path) -> None:
    parts, _ = stacked("NVFP4")
    found = read({**parts, "pre_quant_scale": torch.ones(WIDTH)}, tmp_path)
    assert f"{NAME}_pre_quant_scale" not in found


@pytest.mark.parametrize(
    ("algorithm", "leaf", "change", "message"),
    [
        ("NVFP4", "weight_scale_2", None, "gate_up_proj_weight_scale_2 is missing next to"),
        ("NVFP4", "weight_scale", lambda scale: scale[:, 1:], "gate_up_proj_weight_scale must be 3 x 16 x 320: "),
        ("NVFP4", "weight_scale", lambda scale: scale[0], "gate_up_proj_weight_scale must be 3 x 16 x 320: "),
        ("MXFP8", "weight_scale", lambda scale: scale[..., 1:], "must be 3 x 256 x 10: "),
        ("FP8", "weight_scale", lambda scale: scale.repeat(2), "gate_up_proj_weight_scale must be 3: "),
        ("fp8_pb_wo", "weight_scale", lambda scale: scale[:1], "gate_up_proj_weight_scale must be 3: "),
        ("FP8", "weight", lambda weight: weight.view(torch.int8), "gate_up_proj must be F8_E4M3, or floats in blocks"),
    ],
)  # fmt: skip
def test_damaged_parts_are_named(
    algorithm: str, leaf: str, change: Callable[[Tensor], Tensor] | None, message: str, tmp_path: Path
) -> None:
    parts, _ = stacked(algorithm)
    part = parts.pop(leaf)
    with pytest.raises(WeightError) as caught:
        read(parts if change is None else {**parts, leaf: change(part)}, tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'model.safetensors'}: {NAME}")
    assert message in str(caught.value)
