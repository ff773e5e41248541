"""Quantized Hugging Face checkpoints: their values to the last bit, and in graphs where operations hold them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GptOssConfig, GptOssForCausalLM
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

from exporters.export import export
from exporters.steps.options import ExportOptions
from tests.exporters.data.carried_values import carried_values
from tests.parity.reference import build
from tests.thinned import one_in
from tests.zoo.checkpoints.packed_checkpoints import (
    awq,
    compressed,
    float4,
    fp8,
    gptq,
    group_of,
    int8,
    modelopt_int4,
    mxfp8,
    write_packed,
)
from tests.zoo.filled import stored_model
from zoo.builder import assemble
from zoo.checkpoints.open_weights import open_weights
from zoo.configs.importing import import_spec
from zoo.families.common.config_errors import ConfigError
from zoo.packed.formats import READERS
from zoo.packed.mxfp4 import read_mxfp4
from zoo.weights.safetensors import read_safetensors
from zoo.weights.source import WeightError

GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 64, "desc_act": False, "sym": False}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True, "version": "gemm"}
COMPRESSED = {"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"]}
INT = {**COMPRESSED, "format": "int-quantized"}
FLOAT = {**COMPRESSED, "format": "float-quantized"}
TILED = {
    "quant_method": "fp8",
    "fmt": "e4m3",
    "activation_scheme": "dynamic",
    "weight_block_size": [128, 128],
}


def modelopt(algorithm: str) -> dict[str, Any]:
    return {"quant_method": "modelopt", "quant_algo": algorithm, "ignore": ["lm_head"]}


CASES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "gptq": (gptq(), GPTQ, "int4"),
    "gptq symmetric": (gptq(group=32, symmetric=True), {**GPTQ, "group_size": 32}, "int4"),
    "gptq v2": (gptq(version=2), {**GPTQ, "checkpoint_format": "gptq_v2"}, "int4"),
    "gptq per row": (gptq(group=-1), {**GPTQ, "group_size": -1}, "int4"),
    "gptq 8 bits": (gptq(bits=8), {**GPTQ, "bits": 8}, "int8"),
    "gptq shuffled": (gptq(shuffled=True), {**GPTQ, "desc_act": True}, ""),
    "awq": (awq(), AWQ, "int4"),
    "awq symmetric": (awq(group=128, symmetric=True), {**AWQ, "group_size": 128}, "int4"),
    "packed int4": (compressed(), {**COMPRESSED, "config_groups": group_of(4, "group", 32, True)}, "int4"),
    "packed int4 asymmetric": (
        compressed(group=64, symmetric=False, dtype=torch.float16),
        {**COMPRESSED, "config_groups": group_of(4, "group", 64, False)},
        "int4",
    ),
    "packed int4 by row": (
        compressed(group=None),
        {**COMPRESSED, "config_groups": group_of(4, "channel", None, True)},
        "int4",
    ),
    "packed int8": (
        compressed(bits=8, group=128),
        {**COMPRESSED, "config_groups": group_of(8, "group", 128, True)},
        "int8",
    ),
    "int8 by row": (int8, {**INT, "config_groups": group_of(8, "channel", None, True)}, "int8"),
    "fp8 by row": (fp8("row"), FLOAT, ""),
    "fp8 by tensor": (fp8("tensor"), FLOAT, ""),
    "fp8 by tile": (fp8("tile"), TILED, ""),
    "nvfp4": (float4("multiplied"), modelopt("NVFP4"), ""),
    "packed nvfp4": (float4("divided"), {**COMPRESSED, "format": "nvfp4-pack-quantized"}, ""),
    "mxfp4": (float4("exponents", 32), modelopt("W4A8_MXFP4_FP8"), ""),
    "mxfp8": (mxfp8, modelopt("MXFP8"), ""),
    "modelopt int4": (modelopt_int4(scaled_inputs=False), modelopt("W4A16_AWQ"), "int4"),
    "modelopt awq": (modelopt_int4(scaled_inputs=True), modelopt("W4A16_AWQ"), ""),
    "modelopt fp8": (fp8("row"), modelopt("FP8_PER_CHANNEL_PER_TOKEN"), ""),
    "modelopt tiles": (fp8("tile", four_axes=True), modelopt("FP8_PB_WO"), ""),
    "modelopt int8": (int8, modelopt("W8A16"), "int8"),
}
"""How each is packed, its quantization_config, and the precision that carries it, if any does."""


@one_in(6)
@pytest.mark.parametrize("case", CASES)
def test_values_are_those_of_the_codes(case: str, tmp_path: Path) -> None:
    pack, config, carried = CASES[case]
    values = write_packed(tmp_path / "x", pack, config)
    spec = import_spec(tmp_path / "x")
    source = open_weights(str(tmp_path / "x"), assemble(spec), spec)
    for name, wanted in values.items():
        assert torch.equal(torch.cat(list(source.pieces(name))).view(wanted.shape), wanted)
        codes = source.codes(name)
        assert (codes is None) == (not carried)
        if codes is not None:
            rows = [codes.blocks.restore(part, wanted.shape[1]) for part in codes.rows()]
            assert torch.equal(torch.cat(rows), wanted)


def test_model_optimizer_may_state_its_algorithm_in_a_file_of_its_own(tmp_path: Path) -> None:
    pack, config, _ = CASES["nvfp4"]
    values = write_packed(tmp_path, pack, config)
    stated = json.loads((tmp_path / "config.json").read_text())
    del stated["quantization_config"]
    (tmp_path / "config.json").write_text(json.dumps(stated))
    own = {
        "producer": {"name": "modelopt"},
        "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"},
    }
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(own))
    spec = import_spec(tmp_path)
    source = open_weights(str(tmp_path), assemble(spec), spec)
    name, wanted = next(iter(values.items()))
    assert torch.equal(torch.cat(list(source.pieces(name))).view(wanted.shape), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "portable"])
@pytest.mark.parametrize("case", [name for name, (_, _, carried) in CASES.items() if carried != ""])
def test_codes_are_carried_bit_for_bit(case: str, target: str, tmp_path: Path) -> None:
    pack, config, precision = CASES[case]
    values = write_packed(tmp_path / "x", pack, config)
    options = ExportOptions.of(weights=str(tmp_path / "x"), precision=precision, target=target)
    written = export(import_spec(tmp_path / "x"), tmp_path / "out", options)
    assert all(found.carried for found in written.manifest.quantized)
    assert sum(len(found.weights) for found in written.manifest.quantized) == 7
    assert written.verification is not None
    assert written.verification.worst_weight is not None
    graph = dict(carried_values(tmp_path / "out/model.onnx"))
    if case in ("int8 by row", "modelopt int8"):
        return  # multiplied as integers, by operations that are not restored here
    whole = torch.cat(
        [values[f"decoder.blocks.0.attention.{name}.weight"] for name in ("query", "key", "value")]
    )
    wanted = {"attention.query_key_value": whole, **{name[17:-7]: made for name, made in values.items()}}
    checked = 0
    for name, got in graph.items():
        module = name.removeprefix("decoder.blocks.0.").rpartition(".weight")[0]
        if module in wanted:
            assert torch.equal(torch.from_numpy(got), wanted[module])
            checked += 1
    assert checked >= 5


@pytest.mark.slow
def test_unsupported_blocks_are_dequantized_and_reported(tmp_path: Path) -> None:
    write_packed(tmp_path / "x", *CASES["fp8 by tile"][:2])
    options = ExportOptions(weights=str(tmp_path / "x"), precision="int8", target="cpu")
    written = export(import_spec(tmp_path / "x"), tmp_path / "out", options)
    (found,) = written.manifest.quantized
    assert (found.format, found.carried, found.carried_by, len(found.weights)) == ("fp8", False, (), 7)


def test_mxfp4_is_read_as_transformers_reads_it(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(1)
    blocks = torch.randint(0, 256, (3, 64, 2, 16), generator=generator, dtype=torch.uint8)
    scales = torch.randint(110, 130, (3, 64, 2), generator=generator, dtype=torch.uint8)
    save_file({"down_proj_blocks": blocks, "down_proj_scales": scales}, tmp_path / "x.safetensors")
    found = dict(read_mxfp4(read_safetensors(tmp_path / "x.safetensors"), {}, "config.json"))
    assert found["down_proj_blocks"] is found["down_proj_scales"] is None
    matrix = found["down_proj"]
    assert matrix is not None
    wanted = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
    assert matrix.shape == tuple(wanted.shape)
    assert torch.equal(matrix.read(), wanted)


def test_experts_of_gpt_oss_are_read_from_mxfp4(tmp_path: Path) -> None:
    config = GptOssConfig(
        vocab_size=64, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, num_local_experts=4, num_experts_per_tok=2, max_position_embeddings=64,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0}, architectures=["GptOssForCausalLM"],
    )  # fmt: skip
    reference = build(GptOssForCausalLM, config, seed=1)
    generator, state, tensors = torch.Generator().manual_seed(1), dict[str, Any](), dict[str, Any]()
    for name, values in reference.state_dict().items():
        tensors[name] = values.clone().contiguous()
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            experts, width, rows = tensors.pop(name).shape
            shape = (experts, rows, width // 32)
            blocks = torch.randint(0, 256, (*shape, 16), generator=generator, dtype=torch.uint8)
            scales = torch.randint(121, 125, shape, generator=generator, dtype=torch.uint8)
            tensors |= {f"{name}_blocks": blocks, f"{name}_scales": scales}
            state[name] = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
    reference.load_state_dict(state, strict=False)
    save_file(tensors, tmp_path / "model.safetensors")
    stated = {
        **config.to_dict(),
        "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": []},
    }
    (tmp_path / "config.json").write_text(json.dumps(stated))
    spec = import_spec(tmp_path)
    model = stored_model(spec, tmp_path)
    tokens = torch.randint(0, 64, (2, 12), generator=generator)
    with torch.no_grad():
        torch.testing.assert_close(
            model.eval()(tokens).logits, reference(tokens).logits, rtol=1e-4, atol=1e-4
        )


# ---------------------------------------------------------------------------------------------------- errors


def refused(directory: Path) -> str:
    spec = import_spec(directory)
    with pytest.raises(WeightError) as caught:
        export(spec, directory.parent / "out", ExportOptions(weights=str(directory), precision="int4"))
    assert not (directory.parent / "out").exists()
    return str(caught.value)


def changed(directory: Path, name: str, change: Any) -> None:
    tensors = load_file(directory / "model.safetensors")
    for key in [key for key in tensors if key.endswith(name)]:
        made = change(tensors.pop(key))
        if made is not None:
            tensors[key] = made.contiguous()
    save_file(tensors, directory / "model.safetensors")


def test_scales_that_do_not_fit_the_codes(tmp_path: Path) -> None:
    write_packed(tmp_path / "x", gptq(), {**GPTQ, "group_size": 32})
    message = refused(tmp_path / "x")
    assert "mlp.down_proj.scales must be 8 x 128: " in message
    assert "\n  value: 4 x 128\n" in message
    assert "mlp.down_proj.qweight has 256 x 128 codes, and group_size is 32" in message
    assert "Use config.json and tensors from the same checkpoint." in message


def test_matrices_that_do_not_fit_the_config(tmp_path: Path) -> None:
    write_packed(tmp_path / "x", gptq(), GPTQ, intermediate_size=512)
    message = refused(tmp_path / "x")
    assert (
        "gate_proj.weight is 256 x 128, and decoder.blocks.0.feed_forward.gate.weight needs 512 x 128"
        in message
    )


def test_a_missing_part(tmp_path: Path) -> None:
    write_packed(tmp_path / "x", awq(), AWQ)
    changed(tmp_path / "x", "q_proj.scales", lambda tensor: None)
    assert "model.layers.0.self_attn.q_proj.scales is missing next to" in refused(tmp_path / "x")


@pytest.mark.parametrize("method", ["bitsandbytes", "hqq", None])
def test_unknown_methods_are_refused_by_name(method: str | None, tmp_path: Path) -> None:
    write_packed(tmp_path / "x", gptq(), {"quant_method": method})
    with pytest.raises(ConfigError) as caught:
        import_spec(tmp_path / "x")
    message = str(caught.value)
    assert f"quantization_config.quant_method: is not supported\n  value: {method!r}" in message
    assert all(name in message for name in ("gptq", "awq", "compressed-tensors", "fp8", "mxfp4"))


@pytest.mark.parametrize(
    ("case", "field", "value"),
    [
        ("gptq", "bits", 3),
        ("gptq", "checkpoint_format", "marlin"),
        ("awq", "version", "gemv"),
        ("packed int4", "format", "marlin-24"),
        ("nvfp4", "quant_algo", "NVFP4_SVD"),
        ("packed int4", "kv_cache_scheme", {"num_bits": 8}),
    ],
)
def test_variants_that_are_not_read_are_refused(case: str, field: str, value: Any, tmp_path: Path) -> None:
    pack, config, _ = CASES[case]
    write_packed(tmp_path / "x", pack, {**config, field: value})
    assert f"quantization_config.{field}: is not supported\n  value: {value!r}" in refused(tmp_path / "x")


def test_every_reader_is_tested() -> None:
    tested = {config["quant_method"] for _, config, _ in CASES.values()}
    assert set(READERS) - tested == {"mxfp4", "fbgemm_fp8"}
