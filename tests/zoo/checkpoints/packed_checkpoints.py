"""Small quantized checkpoints, packed as the formats' own tools pack them, one code at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import LlamaConfig

WIDTH, HIDDEN, VOCABULARY = 128, 256, 96
MATRICES = {
    "self_attn.q_proj": (128, WIDTH),
    "self_attn.k_proj": (64, WIDTH),
    "self_attn.v_proj": (64, WIDTH),
    "self_attn.o_proj": (WIDTH, 128),
    "mlp.gate_proj": (HIDDEN, WIDTH),
    "mlp.up_proj": (HIDDEN, WIDTH),
    "mlp.down_proj": (WIDTH, HIDDEN),
}
PARAMETERS = {
    "self_attn.q_proj": "attention.query",
    "self_attn.k_proj": "attention.key",
    "self_attn.v_proj": "attention.value",
    "self_attn.o_proj": "attention.output",
    "mlp.gate_proj": "feed_forward.gate",
    "mlp.up_proj": "feed_forward.up",
    "mlp.down_proj": "feed_forward.down",
}
Tensors = dict[str, Tensor]
Pack = Callable[[int, int, torch.Generator], tuple[Tensors, Tensor]]
"""From rows, columns and random numbers to the tensors of a matrix, by the last part of their names, and its values."""


def word(codes: list[int], bits: int) -> int:
    """An int32 word of codes, the first in the lowest bits."""
    value = sum(code << (bits * place) for place, code in enumerate(codes))
    return value - 2**32 if value >= 2**31 else value


def words(codes: Tensor, bits: int) -> Tensor:
    """Codes along the last axis as words; the last word is filled up with zeros."""
    per = 32 // bits
    rows = [
        [word(row[start : start + per], bits) for start in range(0, len(row), per)] for row in codes.tolist()
    ]
    return torch.tensor(rows, dtype=torch.int32)


def drawn(
    rows: int,
    width: int,
    group: int,
    bits: int,
    symmetric: bool,
    dtype: torch.dtype,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Codes N K, scales and zero points N G, and the values that they stand for."""
    codes = torch.randint(0, 2**bits, (rows, width), generator=generator)
    groups = -(-width // group)
    scales = (torch.rand(rows, groups, generator=generator) + 0.5).mul(0.3 / 2**bits).to(dtype)
    low, high = 2 ** (bits - 1) - 2, 2 ** (bits - 1) + 2
    zeros = torch.full((rows, groups), 2 ** (bits - 1))
    if not symmetric:
        zeros = torch.randint(low, high, (rows, groups), generator=generator)
    order = torch.arange(width) // group
    values = (codes - zeros[:, order]).float() * scales.float()[:, order]
    return codes, scales, zeros, values


def gptq(
    bits: int = 4, group: int = 64, symmetric: bool = False, version: int = 1, shuffled: bool = False
) -> Pack:
    """As ``QuantLinear.pack`` of AutoGPTQ."""

    def pack(rows: int, width: int, generator: torch.Generator) -> tuple[Tensors, Tensor]:
        size = group if group > 0 else width
        codes, scales, zeros, values = drawn(rows, width, size, bits, symmetric, torch.float16, generator)
        index = torch.arange(width) // size
        if shuffled:
            order = torch.randperm(width, generator=generator)
            index = index[order]
            values = (codes - zeros[:, index]).float() * scales.float()[:, index]
        stored = zeros - 1 if version == 1 else zeros
        return {
            "qweight": words(codes.t().t(), bits).t().contiguous(),
            "qzeros": words(stored.t(), bits),
            "scales": scales.t().contiguous(),
            "g_idx": index.int(),
        }, values

    return pack


def awq(group: int = 64, symmetric: bool = False) -> Pack:
    """As ``WQLinear_GEMM.from_linear`` of AutoAWQ."""
    order = [0, 2, 4, 6, 1, 3, 5, 7]

    def packed(codes: Tensor) -> Tensor:
        rows = [
            [word([row[start + each] for each in order], 4) for start in range(0, len(row), 8)]
            for row in codes.tolist()
        ]
        return torch.tensor(rows, dtype=torch.int32)

    def pack(rows: int, width: int, generator: torch.Generator) -> tuple[Tensors, Tensor]:
        codes, scales, zeros, values = drawn(rows, width, group, 4, symmetric, torch.float16, generator)
        return {
            "qweight": packed(codes.t()),
            "qzeros": packed(zeros.t()),
            "scales": scales.t().contiguous(),
        }, values

    return pack


def compressed(
    bits: int = 4, group: int | None = 32, symmetric: bool = True, dtype: torch.dtype = torch.bfloat16
) -> Pack:
    """As ``PackedQuantizationCompressor`` of compressed-tensors: signed codes, with half their range added in words."""

    def pack(rows: int, width: int, generator: torch.Generator) -> tuple[Tensors, Tensor]:
        codes, scales, zeros, values = drawn(rows, width, group or width, bits, symmetric, dtype, generator)
        tensors = {
            "weight_packed": words(codes, bits),
            "weight_scale": scales,
            "weight_shape": torch.tensor([rows, width]),
        }
        if not symmetric:
            tensors["weight_zero_point"] = words(zeros.t(), bits).t().contiguous()
        return tensors, values

    return pack


def int8(rows: int, width: int, generator: torch.Generator) -> tuple[Tensors, Tensor]:
    """``int-quantized``: int8 as it is, with a scale per row."""
    codes, scales, _, values = drawn(rows, width, width, 8, True, torch.bfloat16, generator)
    return {"weight": (codes - 128).to(torch.int8), "weight_scale": scales}, values


def fp8(scales_of: str, *, four_axes: bool = False) -> Pack:
    """8-bit floats, with scales as the format of a checkpoint has them; Model Optimizer gives those of tiles four axes."""

    def pack(rows: int, width: int, generator: torch.Generator) -> tuple[Tensors, Tensor]:
        weight = torch.randn(rows, width, generator=generator).mul(100).to(torch.float8_e4m3fn)
        shape = {"row": (rows, 1), "tensor": (1,), "tile": (-(-rows // 128), -(-width // 128))}[scales_of]
        scale = (torch.rand(shape, generator=generator) + 0.5) / 1000
        spread = scale
        if scales_of == "tile":
            spread = torch.stack([
                torch.stack([scale[row // 128, column // 128] for column in range(width)]) for row in range(rows)
            ])  # fmt: skip
        name = "weight_scale_inv" if scales_of == "tile" and not four_axes else "weight_scale"
        stored = scale[:, None, :, None] if four_axes else scale
        return {"weight": weight, name: stored}, weight.float() * spread

    return pack


E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6)


def float4(scales_of: str, size: int = 16) -> Pack:
    """4-bit floats in blocks: NVFP4 of Model Optimizer (``NVFP4QTensor``) and of compressed-tensors, and MXFP4."""

    def pack(rows: int, width: int, generator: torch.Generator) -> tuple[Tensors, Tensor]:
        codes = torch.randint(0, 16, (rows, width), generator=generator)
        packed = codes[:, 0::2] + 16 * codes[:, 1::2]
        whole = torch.tensor(0.0007)
        if scales_of == "exponents":
            stored = torch.randint(115, 122, (rows, width // size), generator=generator).to(torch.uint8)
            factors = torch.tensor([[2.0 ** (exponent - 127) for exponent in row] for row in stored.tolist()])
        else:
            stored = (torch.rand(rows, width // size, generator=generator) * 200 + 8).to(torch.float8_e4m3fn)
            factors = stored.float() / whole if scales_of == "divided" else stored.float() * whole
        values = torch.tensor([[E2M1[code] for code in row] for row in codes.tolist()])
        values = values * torch.stack([factors[:, column // size] for column in range(width)], 1)
        bytes_of = packed.to(torch.uint8)
        if scales_of == "divided":
            return {
                "weight_packed": bytes_of,
                "weight_scale": stored,
                "weight_global_scale": whole[None],
            }, values
        second = {} if scales_of == "exponents" else {"weight_scale_2": whole}
        return {
            "weight": bytes_of,
            "weight_scale": stored,
            "input_scale": torch.tensor(0.1),
            **second,
        }, values

    return pack


def mxfp8(rows: int, width: int, generator: torch.Generator) -> tuple[Tensors, Tensor]:
    """8-bit floats in blocks of 32, whose scales are powers of two."""
    weight = torch.randn(rows, width, generator=generator).mul(100).to(torch.float8_e4m3fn)
    exponents = torch.randint(110, 118, (rows, width // 32), generator=generator)
    factors = torch.stack([2.0 ** (exponents[:, column // 32] - 127.0) for column in range(width)], 1)
    return {"weight": weight, "weight_scale": exponents.to(torch.uint8)}, weight.float() * factors


def modelopt_int4(*, scaled_inputs: bool) -> Pack:
    """As ``pack_int4_in_uint8`` of Model Optimizer: two rows in a byte; with AWQ, inputs are multiplied by factors first."""

    def pack(rows: int, width: int, generator: torch.Generator) -> tuple[Tensors, Tensor]:
        codes, scales, _, values = drawn(rows, width, 64, 4, True, torch.bfloat16, generator)
        signed = (codes - 8) & 15
        tensors = {"weight": (signed[0::2] + 16 * signed[1::2]).to(torch.uint8), "weight_scale": scales}
        if not scaled_inputs:
            return tensors, values
        factors = (torch.rand(width, generator=generator) + 0.5).to(torch.bfloat16)
        return {**tensors, "pre_quant_scale": factors}, values * factors.float()

    return pack


def group_of(bits: int, strategy: str, size: int | None, symmetric: bool) -> dict[str, Any]:
    """The config_groups of compressed-tensors."""
    weights = {
        "num_bits": bits, "type": "int", "strategy": strategy, "group_size": size, "symmetric": symmetric,
        "dynamic": False, "actorder": None,
    }  # fmt: skip
    return {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None}}


def write_packed(
    directory: Path, pack: Pack, quantization: dict[str, Any], **changes: Any
) -> dict[str, Tensor]:
    """Write a Llama whose matrices are packed; their values, by the names of parameters."""
    directory.mkdir(exist_ok=True)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=HIDDEN, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=True, architectures=["LlamaForCausalLM"],
    ).to_dict()  # fmt: skip
    config |= {"quantization_config": quantization, **changes}
    (directory / "config.json").write_text(json.dumps(config))
    generator = torch.Generator().manual_seed(1)
    tensors = {"model.embed_tokens.weight": torch.randn(VOCABULARY, WIDTH, generator=generator)}
    tensors |= {
        f"model.{name}.weight": torch.ones(WIDTH)
        for name in ("norm", "layers.0.input_layernorm", "layers.0.post_attention_layernorm")
    }
    values = {}
    for name, (rows, width) in MATRICES.items():
        parts, made = pack(rows, width, generator)
        tensors |= {f"model.layers.0.{name}.{leaf}": part.contiguous() for leaf, part in parts.items()}
        values[f"decoder.blocks.0.{PARAMETERS[name]}.weight"] = made
    save_file(tensors, directory / "model.safetensors")
    return values
