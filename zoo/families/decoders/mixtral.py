"""Mixtral (Jiang et al., 2024): ``MixtralConfig``, ``MixtralModel`` and its heads: Llama with mixtures."""

from __future__ import annotations

from zoo.families.common.family import Family
from zoo.families.common.fields import Int
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import WHOLE_HEADS, LlamaFields, llama_tensors
from zoo.families.common.mixtures import MIXTRAL_EXPERTS, TRAINING, mixture

_FIELDS = LlamaFields(intermediate_size=14336, kv_heads=8, context=131072, eps=1e-5)

FAMILIES = (
    Family(
        "mixtral",
        llama_tensors("mixtral", *MIXTRAL_EXPERTS),
        _FIELDS.body(
            attention={"bias": False, "window": Int("sliding_window")},
            feed_forward=mixture(8, 2, _FIELDS.feed_forward()),
            position=_FIELDS.rope(theta=1e6, whole=WHOLE_HEADS),
        ),
        decoder_classes("Mixtral"),
        ignored=TRAINING,
    ),
)
