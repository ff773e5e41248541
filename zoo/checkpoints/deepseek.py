"""DeepSeek-V2 and V3 (2024): ``DeepseekV2ForCausalLM``, ``DeepseekV3ForCausalLM``.

Latent attention; the first layers have an ordinary feed-forward, the others a mixture of experts.
"""

from __future__ import annotations

from dataclasses import replace

from zoo.checkpoints.family import Rule, affine, same
from zoo.checkpoints.llama import LLAMA
from zoo.checkpoints.transforms import Transposed

_STORED, _BLOCK = "layers.{layer}.self_attn", "decoder.blocks.{layer}.attention"
_MIXTURE, _FEED_FORWARD = "layers.{layer}.mlp", "decoder.blocks.{layer}.feed_forward"

DEEPSEEK = replace(
    LLAMA,
    name="deepseek",
    model_types=("deepseek_v2", "deepseek_v3"),
    rules=(
        *LLAMA.rules,
        *affine(f"{_STORED}.q_a_proj", f"{_BLOCK}.query_down"),
        same(f"{_STORED}.q_a_layernorm.weight", f"{_BLOCK}.query_norm.weight"),
        same(f"{_STORED}.q_b_proj.weight", f"{_BLOCK}.query_up.weight"),
        *affine(f"{_STORED}.kv_a_proj_with_mqa", f"{_BLOCK}.key_value_down"),
        same(f"{_STORED}.kv_a_layernorm.weight", f"{_BLOCK}.key_value_norm.weight"),
        same(f"{_STORED}.kv_b_proj.weight", f"{_BLOCK}.key_value_up.weight"),
        same(f"{_MIXTURE}.gate.weight", f"{_FEED_FORWARD}.router.weight"),
        same(f"{_MIXTURE}.gate.e_score_correction_bias", f"{_FEED_FORWARD}.router.correction"),
        same(f"{_MIXTURE}.experts.{{expert}}.gate_proj.weight", f"{_FEED_FORWARD}.experts.gate.weight"),
        same(f"{_MIXTURE}.experts.{{expert}}.up_proj.weight", f"{_FEED_FORWARD}.experts.up.weight"),
        Rule(
            f"{_MIXTURE}.experts.{{expert}}.down_proj.weight",
            (f"{_FEED_FORWARD}.experts.down.weight",),
            Transposed(),
        ),
        *(
            same(f"{_MIXTURE}.shared_experts.{part}_proj.weight", f"{_FEED_FORWARD}.shared.{part}.weight")
            for part in ("gate", "up", "down")
        ),
    ),
)
