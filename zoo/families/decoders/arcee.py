"""Arcee AFM (Arcee AI, 2025): ``ArceeConfig``, ``ArceeModel`` and its heads: Llama without gates, with squared rectifiers."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import LLAMA, LlamaFields

_FIELDS = LlamaFields(hidden_size=2560, intermediate_size=18432, context=4096, eps=1e-5)

FAMILIES = (
    Family(
        "arcee",
        LLAMA,
        _FIELDS.body(
            attention={"bias": f.Bias("attention_bias", default=False)},
            feed_forward=_FIELDS.mlp(f.Bool("mlp_bias", default=False)),
        ),
        decoder_classes("Arcee"),
    ),
)
