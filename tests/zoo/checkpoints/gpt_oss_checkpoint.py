"""A small checkpoint of GPT-OSS with random experts in MXFP4, under the names that OpenAI publishes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

EXPERTS, HEADS, KEY_VALUE_HEADS, HEAD_WIDTH, VOCABULARY = 4, 4, 2, 32, 64


def write_gpt_oss(
    directory: Path, width: int = 64, hidden: int = 128, exponents: tuple[int, int] = (121, 125)
) -> dict[str, Tensor]:
    """Write config and tensors, and return the tensors; stored ``exponents`` are between two bounds."""
    generator = torch.Generator().manual_seed(1)
    tensors: dict[str, Tensor] = {}

    def floats(name: str, *shape: int, around: float = 0.0) -> None:
        tensors[name] = (torch.randn(shape, generator=generator) * 0.05 + around).to(torch.bfloat16)

    def experts(name: str, rows: int, columns: int) -> None:
        shape = (EXPERTS, rows, columns // 32)
        tensors[f"{name}_blocks"] = torch.randint(
            0, 256, (*shape, 16), generator=generator, dtype=torch.uint8
        )
        tensors[f"{name}_scales"] = torch.randint(*exponents, shape, generator=generator, dtype=torch.uint8)
        floats(f"{name}_bias", EXPERTS, rows)

    floats("model.embed_tokens.weight", VOCABULARY, width)
    floats("model.norm.weight", width, around=1.0)
    floats("lm_head.weight", VOCABULARY, width)
    for layer in range(2):
        place = f"model.layers.{layer}"
        for norm in ("input_layernorm", "post_attention_layernorm"):
            floats(f"{place}.{norm}.weight", width, around=1.0)
        for name, heads in (("q", HEADS), ("k", KEY_VALUE_HEADS), ("v", KEY_VALUE_HEADS)):
            floats(f"{place}.self_attn.{name}_proj.weight", heads * HEAD_WIDTH, width)
            floats(f"{place}.self_attn.{name}_proj.bias", heads * HEAD_WIDTH)
        floats(f"{place}.self_attn.o_proj.weight", width, HEADS * HEAD_WIDTH)
        floats(f"{place}.self_attn.o_proj.bias", width)
        floats(f"{place}.self_attn.sinks", HEADS)
        floats(f"{place}.mlp.router.weight", EXPERTS, width)
        floats(f"{place}.mlp.router.bias", EXPERTS)
        experts(f"{place}.mlp.experts.gate_up_proj", 2 * hidden, width)
        experts(f"{place}.mlp.experts.down_proj", width, hidden)
    directory.mkdir(parents=True, exist_ok=True)
    save_file(tensors, directory / "model.safetensors")
    (directory / "config.json").write_text(json.dumps(_config(width, hidden)))
    return tensors


def _config(width: int, hidden: int) -> dict[str, Any]:
    return {
        "architectures": ["GptOssForCausalLM"],
        "model_type": "gpt_oss",
        "vocab_size": VOCABULARY,
        "hidden_size": width,
        "intermediate_size": hidden,
        "num_hidden_layers": 2,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KEY_VALUE_HEADS,
        "head_dim": HEAD_WIDTH,
        "num_local_experts": EXPERTS,
        "num_experts_per_tok": 2,
        "max_position_embeddings": 256,
        "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
        "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": []},
    }
