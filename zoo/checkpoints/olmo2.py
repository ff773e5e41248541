"""OLMo 2 (OLMo team, 2025): ``Olmo2Model`` and its heads.  Named as Llama's, but for norms of what branches add."""

from __future__ import annotations

from dataclasses import replace

from zoo.checkpoints.family import same
from zoo.checkpoints.llama import LLAMA

_STORED, _BLOCK = "layers.{layer}", "decoder.blocks.{layer}"
_NORMS = (
    same(f"{_STORED}.post_attention_layernorm.weight", f"{_BLOCK}.attention_norm.weight"),
    same(f"{_STORED}.post_feedforward_layernorm.weight", f"{_BLOCK}.feed_forward_norm.weight"),
)

OLMO2 = replace(
    LLAMA,
    name="olmo2",
    model_types=("olmo2",),
    rules=(*(rule for rule in LLAMA.rules if "layernorm" not in rule.stored), *_NORMS),
)
