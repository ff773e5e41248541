"""Gemma (2024), Gemma 2 (2024) and the text models of Gemma 3 (2025): ``GemmaModel`` and so on, and their heads.

Named as Llama's; from Gemma 2 on there is a norm after each branch too.
"""

from __future__ import annotations

from dataclasses import replace

from zoo.checkpoints.family import same
from zoo.checkpoints.llama import LLAMA

_STORED, _BLOCK = "layers.{layer}", "decoder.blocks.{layer}"
_NORMS = {
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "attention_output_norm",
    "pre_feedforward_layernorm": "feed_forward_norm",
    "post_feedforward_layernorm": "feed_forward_output_norm",
}

GEMMA = replace(LLAMA, name="gemma", model_types=("gemma",), head_prefixes={})
GEMMA2 = replace(
    GEMMA,
    name="gemma2",
    model_types=("gemma2", "gemma3_text"),
    rules=(
        *(rule for rule in LLAMA.rules if "layernorm" not in rule.stored),
        *(same(f"{_STORED}.{theirs}.weight", f"{_BLOCK}.{ours}.weight") for theirs, ours in _NORMS.items()),
    ),
)
