"""Qwen2 (Yang et al., 2024): ``Qwen2Config``, ``Qwen2Model`` and its heads."""

from __future__ import annotations

from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import LLAMA, LlamaFields
from zoo.families.common.qwen import LAST_LAYERS

_FIELDS = LlamaFields(vocab_size=151936, intermediate_size=22016, kv_heads=32, context=32768)
_BIAS = {"query": True, "key": True, "value": True, "output": False}

FAMILIES = (
    Family(
        "qwen2",
        LLAMA,
        _FIELDS.body(attention={"bias": _BIAS}, varies=(LAST_LAYERS,)),
        decoder_classes("Qwen2"),
        fixed={"use_mrope": (False, "rotary positions with several axes are not supported")},
    ),
)
