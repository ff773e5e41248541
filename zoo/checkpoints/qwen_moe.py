"""Qwen2-MoE (Qwen team, 2024) and Qwen3-MoE (Yang et al., 2025) and their heads.  As Llama, with mixtures."""

from __future__ import annotations

from dataclasses import replace

from zoo.checkpoints.family import same
from zoo.checkpoints.llama import LLAMA
from zoo.checkpoints.mixtures import MIXTURE, shared

QWEN2_MOE = replace(
    LLAMA,
    name="qwen2_moe",
    model_types=("qwen2_moe",),
    head_prefixes={},
    rules=(
        *LLAMA.rules,
        *MIXTURE,
        *shared("shared_expert"),
        same(
            "layers.{layer}.mlp.shared_expert_gate.weight",
            "decoder.blocks.{layer}.feed_forward.shared_gate.weight",
        ),
    ),
)
QWEN3_MOE = replace(LLAMA, name="qwen3_moe", model_types=("qwen3_moe",), rules=(*LLAMA.rules, *MIXTURE))
