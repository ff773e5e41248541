"""Quantized checkpoints whose tensors or configs are damaged: each fault is named with its place."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.exporters.whole.test_packed import CASES, changed
from tests.thinned import one_in
from tests.zoo.checkpoints.packed_checkpoints import write_packed
from zoo.builder import assemble
from zoo.checkpoints.open_weights import open_weights
from zoo.configs.importing import import_spec
from zoo.packed.formats import unpacked_files
from zoo.weights.files import TensorFiles
from zoo.weights.source import WeightError

QUERY = "model.layers.0.self_attn.q_proj."
DAMAGES: list[tuple[str, str, Any, str]] = [
    ("nvfp4", "weight_scale", lambda scale: scale.view(-1)[0], "weight_scale must be 128 x 8: "),
    ("nvfp4", "weight_scale", lambda scale: scale[:, :1], "weight_scale must be 128 x 8: "),
    ("mxfp4", "weight_scale", lambda scale: scale[:, :3], "weight_scale must be 128 x 4: "),
    ("nvfp4", "weight_scale_2", lambda scale: scale.repeat(8), "weight_scale_2 must be a scalar: "),
    ("nvfp4", "weight_scale_2", lambda scale: None, "weight_scale_2 is missing next to "),
    ("nvfp4", "weight_scale", lambda scale: None, "weight is U8 without scales"),
    ("nvfp4", "weight", lambda codes: codes[None], "weight must have 2 dimensions\n  value: 1 x 128 x 64"),
    ("packed nvfp4", "weight_packed", lambda codes: codes[0, 0], "weight_packed must have 2 dimensions\n  value: a scalar"),
    ("packed nvfp4", "weight_global_scale", lambda scale: scale.repeat(8), "weight_global_scale must be a scalar: "),
    ("packed nvfp4", "weight_global_scale", lambda scale: None, "weight_global_scale is missing next to "),
    ("packed int4", "weight_shape", lambda shape: shape[:1], "weight_shape must be 2: "),
    ("modelopt int4", "weight_scale", lambda scale: scale[:, :0], "weight_scale must divide 128 columns of "),
    ("modelopt int4", "weight_scale", lambda scale: scale[:, [0, 0, 1]], "into groups of a power of two\n  value: 3 groups"),
    ("modelopt int8", "weight_scale", lambda scale: scale[:, :0], "weight_scale must divide 128 columns of "),
    ("int8 by row", "weight", lambda codes: codes[0], "weight must have 2 dimensions\n  value: 128"),
    ("gptq", "qweight", lambda words: words[None], "qweight must have 2 dimensions"),
    ("gptq", "qweight", lambda words: words.float(), "qweight must be I32\n  value: F32\n  Use config.json and tensors"),
    ("gptq", "qzeros", lambda words: words.to(torch.int8), "qzeros must be I32\n  value: I8"),
    ("gptq", "scales", lambda scales: scales.int(), "scales must be F64 or F32 or F16 or BF16\n  value: I32"),
    ("awq", "qweight", lambda words: words.to(torch.uint8), "qweight must be I32\n  value: U8"),
    ("packed int4", "weight_packed", lambda words: words.float(), "weight_packed must be I32\n  value: F32"),
    ("fp8 by tile", "weight_scale_inv", lambda scales: scales.to(torch.uint8), "weight_scale_inv must be F64 or F32 or F16 or BF16\n  value: U8"),
    ("packed nvfp4", "weight_scale", lambda scales: scales.view(torch.uint8), "weight_scale must be F8_E4M3\n  value: U8"),
    ("nvfp4", "weight_scale_2", lambda scale: scale.int(), "weight_scale_2 must be F64 or F32 or F16 or BF16\n  value: I32"),
    ("packed int4", "weight_shape", lambda shape: shape.float(), "weight_shape must be I32 or I64\n  value: F32"),
    ("packed int4", "weight_scale", lambda scales: scales.view(-1)[:1], "weight_scale must be 128 x 4: "),
    ("gptq per row", "qweight", lambda words: words[:0], "qweight has no values\n  value: 0 x 128\n  Download"),
    ("fp8 by row", "weight", lambda codes: codes[:, :0], "weight has no values\n  value: 128 x 0\n  Download"),
    ("fp8 by row", "weight", lambda codes: codes[0], "weight must have 2 dimensions\n  value: 128"),
    ("modelopt tiles", "weight_scale", lambda scales: scales.expand(-1, -1, -1, 2), "weight_scale must be 128 x 1: "),
    ("modelopt awq", "pre_quant_scale", lambda scale: scale.int(), "pre_quant_scale must be F64 or F32 or F16 or BF16\n  value: I32"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "leaf", "change", "message"), DAMAGES)
def test_damaged_parts_are_named(case: str, leaf: str, change: Any, message: str, tmp_path: Path) -> None:
    pack, config, _ = CASES[case]
    write_packed(tmp_path, pack, config)
    changed(tmp_path, QUERY + leaf, change)
    with pytest.raises(WeightError) as caught:
        unpacked_files(TensorFiles.open(tmp_path))
    assert str(caught.value).startswith(f"{tmp_path / 'model.safetensors'}: {QUERY}")
    assert message in str(caught.value)


@pytest.mark.parametrize("group", [-2, 1000])
def test_groups_that_there_are_not_are_named(group: int, tmp_path: Path) -> None:
    pack, config, _ = CASES["gptq"]
    write_packed(tmp_path, pack, config)
    changed(tmp_path, QUERY + "g_idx", lambda index: torch.full_like(index, group))
    matrix = unpacked_files(TensorFiles.open(tmp_path)).tensors[f"{QUERY}weight"]
    with pytest.raises(WeightError, match=rf"g_idx must have groups from 0 to \d+\n  value: {group}\n"):
        matrix.read()


def test_groups_of_columns_are_whole_numbers(tmp_path: Path) -> None:
    pack, config, _ = CASES["gptq"]
    write_packed(tmp_path, pack, config)
    changed(tmp_path, QUERY + "g_idx", lambda index: index.float())
    matrix = unpacked_files(TensorFiles.open(tmp_path)).tensors[f"{QUERY}weight"]
    with pytest.raises(WeightError, match=r"g_idx must be I32 or I64\n  value: F32\n"):
        matrix.read()


@one_in(3)
@pytest.mark.parametrize(
    ("case", "changes", "message"),
    [
        ("nvfp4", {"quantization": []}, "quantization: must be an object\n  value: []"),
        ("nvfp4", {"quant_method": ["modelopt"]}, "quant_method: is not supported\n  value: ['modelopt']"),
        ("packed int4", {"config_groups": []}, "config_groups: must be an object\n  value: []"),
        ("packed int4", {"config_groups": {"a": 1}}, "a: must be an object\n  value: 1"),
        ("gptq", {"group_size": "64"}, "group_size: must be an integer\n  value: '64'"),
        ("awq", {"group_size": [64]}, "group_size: must be an integer\n  value: [64]"),
        ("fp8 by tile", {"weight_block_size": 128}, "weight_block_size: must be a list\n  value: 128"),
        ("fp8 by tile", {"weight_block_size": [0, 128]}, "weight_block_size: must be two positive integers"),
    ],
)
def test_fields_of_another_type_are_named(
    case: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    pack, config, _ = CASES[case]
    write_packed(tmp_path, pack, {**config, **changes})
    with pytest.raises(WeightError) as caught:
        unpacked_files(TensorFiles.open(tmp_path))
    assert str(caught.value).startswith(f"{tmp_path / 'config.json'}: quantization_config.")
    assert message in str(caught.value)


@pytest.mark.parametrize("shape", [(), (1,), (128,)])
def test_scales_of_int8_may_be_a_vector_or_one(shape: tuple[int, ...], tmp_path: Path) -> None:
    write_packed(tmp_path, *CASES["modelopt int8"][:2])
    changed(tmp_path, f"{QUERY}weight_scale", lambda scale: scale.view(-1)[: math.prod(shape)].view(shape))
    tensors = load_file(tmp_path / "model.safetensors")
    matrix = unpacked_files(TensorFiles.open(tmp_path)).tensors[f"{QUERY}weight"]
    scales = tensors[f"{QUERY}weight_scale"].float().view(-1, 1)
    assert torch.equal(matrix.read(), tensors[f"{QUERY}weight"].float() * scales)


def test_int8_is_named_by_the_checkpoint_that_holds_it(tmp_path: Path) -> None:
    for case, form in (("modelopt int8", "modelopt int8"), ("int8 by row", "compressed-tensors int8")):
        write_packed(tmp_path, *CASES[case][:2])
        assert unpacked_files(TensorFiles.open(tmp_path)).tensors[f"{QUERY}weight"].kind == form


def test_codes_without_a_config_are_named_as_codes_and_not_by_their_shape(tmp_path: Path) -> None:
    write_packed(tmp_path, *CASES["nvfp4"][:2])
    spec = import_spec(tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(WeightError) as caught:
        open_weights(str(tmp_path), assemble(spec), spec)
    assert f"{QUERY}weight has dtype U8; weights must be F64, " in str(caught.value)
    assert "of another shape" not in str(caught.value)
