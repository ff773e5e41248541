"""Qwen3 (Yang et al., 2025), the dense models: ``Qwen3Config``, ``Qwen3Model`` and its heads."""

from __future__ import annotations

from zoo.families.common.family import Family
from zoo.families.common.fields import Bias
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import LLAMA, LlamaFields
from zoo.families.common.qwen import LAST_LAYERS

_FIELDS = LlamaFields(vocab_size=151936, intermediate_size=22016, kv_heads=32, head_dim=128, context=32768)
_ATTENTION = {
    "bias": Bias("attention_bias", default=False),
    "qk_norm": _FIELDS.qk_norm,
}

FAMILIES = (
    Family(
        "qwen3", LLAMA, _FIELDS.body(attention=_ATTENTION, varies=(LAST_LAYERS,)), decoder_classes("Qwen3")
    ),
)
