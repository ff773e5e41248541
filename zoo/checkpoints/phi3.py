"""Phi-3 (Abdin et al., 2024): ``Phi3Model`` and its heads.

Named as Llama's, but queries, keys and values are stored as one, and so are gate and up.
"""

from __future__ import annotations

from dataclasses import replace

from zoo.checkpoints.family import Rule
from zoo.checkpoints.llama import LLAMA
from zoo.checkpoints.transforms import STACKED

_STORED, _BLOCK = "layers.{layer}", "decoder.blocks.{layer}"
_SEPARATE = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")


def _fused(stored: str, *modules: str) -> Rule:
    return Rule(
        f"{_STORED}.{stored}.weight", tuple(f"{_BLOCK}.{module}.weight" for module in modules), STACKED
    )


PHI3 = replace(
    LLAMA,
    name="phi3",
    model_types=("phi3",),
    head_prefixes={},
    rules=(
        *(rule for rule in LLAMA.rules if not any(f".{name}." in rule.stored for name in _SEPARATE)),
        _fused("self_attn.qkv_proj", "attention.query", "attention.key", "attention.value"),
        _fused("mlp.gate_up_proj", "feed_forward.gate", "feed_forward.up"),
    ),
)
