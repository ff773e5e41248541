"""Mistral (Jiang et al., 2023): ``MistralConfig``, ``MistralModel`` and its heads."""

from __future__ import annotations

from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import LlamaFields, llama_tensors
from zoo.families.common.windowed_layers import SingleWindow

_FIELDS = LlamaFields(intermediate_size=14336, kv_heads=8, context=131072)

FAMILIES = (
    Family(
        "mistral",
        llama_tensors("mistral"),
        _FIELDS.body(attention={"bias": False, "window": SingleWindow(_FIELDS.depth, default=4096)}),
        decoder_classes("Mistral"),
    ),
)
