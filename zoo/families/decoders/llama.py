"""Llama (Touvron et al., 2023): ``LlamaConfig``, ``LlamaModel`` and its heads."""

from __future__ import annotations

from zoo.families.common.family import Family
from zoo.families.common.fields import Bias, Bool
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import LLAMA, LlamaFields

_FIELDS = LlamaFields()

FAMILIES = (
    Family(
        "llama",
        LLAMA,
        _FIELDS.body(
            attention={"bias": Bias("attention_bias", default=False)},
            feed_forward=_FIELDS.feed_forward(bias=Bool("mlp_bias", default=False)),
        ),
        decoder_classes("Llama"),
        fixed={"rope_interleaved": (False, "the reference pairs dimension i with i + n/2")},
        ignored=("max_sequence_length", "is_llama_config"),  # of Llama 1 and SmolLM2
    ),
)
