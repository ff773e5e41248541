"""Jais 2 (Inception, 2025): ``Jais2Config``, ``Jais2Model`` and its head: Llama with layer norms, and without gates."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.decoders import layer_norm
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.llama_like import LLAMA, LlamaFields

_FIELDS = LlamaFields(vocab_size=150272, hidden_size=3328, intermediate_size=26624, heads=26, context=8192)
_FIELDS.norm = layer_norm("layer_norm_eps")

FAMILIES = (
    Family(
        "jais2",
        LLAMA,
        _FIELDS.body(
            attention={"bias": f.Bias("attention_bias", default=True)},
            feed_forward=_FIELDS.mlp(f.Bool("mlp_bias", default=True)),
        ),
        {"Jais2ForCausalLM": language_modeling(tied=False, bias=False), "Jais2Model": BODY},
    ),
)
