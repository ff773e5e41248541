"""Nemotron-4 and Minitron (NVIDIA, 2024): ``NemotronConfig``, ``NemotronModel`` and its heads.

Layer norms around 0, squared rectifiers, and heads that rotate in part.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.decoders import layer_norm
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import LLAMA, LlamaFields

_FIELDS = LlamaFields(vocab_size=256000, hidden_size=6144, intermediate_size=24576, heads=48, context=4096)

FAMILIES = (
    Family(
        "nemotron",
        LLAMA,
        _FIELDS.body(
            norm=layer_norm("norm_eps", unit_offset=True),
            attention={"bias": f.Bias("attention_bias", default=False)},
            feed_forward=_FIELDS.mlp(f.Bool("mlp_bias", default=False)),
            position=_FIELDS.rope(fraction=0.5),
        ),
        decoder_classes("Nemotron"),
    ),
)
