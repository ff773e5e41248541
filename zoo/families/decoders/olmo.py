"""OLMo (Groeneveld et al., 2024): ``OlmoConfig``, ``OlmoModel`` and its heads."""

from __future__ import annotations

from zoo.families.common.family import Family
from zoo.families.common.fields import Bias, Float
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import LLAMA, LlamaFields

_NORM = {"kind": "layer_norm", "eps": 1e-5, "weight": False, "bias": False}
_ATTENTION = {"bias": Bias("attention_bias", default=False), "clip": Float("clip_qkv")}

FAMILIES = (
    Family(
        "olmo",
        LLAMA,
        LlamaFields(vocab_size=50304).body(attention=_ATTENTION, norm=_NORM),
        decoder_classes("Olmo", without=("ForTokenClassification", "ForQuestionAnswering")),
    ),
)
