"""DeepSeek-V2 and V3 (2024): ``DeepseekV2ForCausalLM``, ``DeepseekV3ForCausalLM``.

Latent attention; the first layers have an ordinary feed-forward, the others a mixture of experts.
"""

from __future__ import annotations

from dataclasses import replace

from zoo.checkpoints.family import affine, same
from zoo.checkpoints.llama import LLAMA
from zoo.checkpoints.mixtures import MIXTURE, shared

_STORED, _BLOCK = "layers.{layer}.self_attn", "decoder.blocks.{layer}.attention"

DEEPSEEK = replace(
    LLAMA,
    name="deepseek",
    model_types=("deepseek_v2", "deepseek_v3"),
    head_prefixes={},
    rules=(
        *(rule for rule in LLAMA.rules if "_norm." not in rule.stored),
        *affine(f"{_STORED}.q_a_proj", f"{_BLOCK}.query_down"),
        same(f"{_STORED}.q_a_layernorm.weight", f"{_BLOCK}.query_norm.weight"),
        same(f"{_STORED}.q_b_proj.weight", f"{_BLOCK}.query_up.weight"),
        *affine(f"{_STORED}.kv_a_proj_with_mqa", f"{_BLOCK}.key_value_down"),
        same(f"{_STORED}.kv_a_layernorm.weight", f"{_BLOCK}.key_value_norm.weight"),
        same(f"{_STORED}.kv_b_proj.weight", f"{_BLOCK}.key_value_up.weight"),
        *MIXTURE,
        same(
            "layers.{layer}.mlp.gate.e_score_correction_bias",
            "decoder.blocks.{layer}.feed_forward.router.correction",
        ),
        *shared("shared_experts"),
    ),
    unused_layers="layers.*.eh_proj.weight",  # of V3: each guesses a further token
)
