"""Youtu-LLM (Tencent, 2026): ``YoutuConfig``, ``YoutuModel`` and its head: Llama with the latent attention of DeepSeek-V3."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.llama_like import LlamaFields
from zoo.families.decoders.deepseek import LATENT_TENSORS, latent_body, latent_fixed

_FIELDS = LlamaFields(vocab_size=128256, hidden_size=2048, intermediate_size=6144, heads=16, context=131072)
_LAYOUT = f.Choice("rope_interleave", {True: "interleaved", False: "half_split"}, True)

FAMILIES = (
    Family(
        "youtu",
        LATENT_TENSORS,
        latent_body(
            _FIELDS,
            layout=_LAYOUT,
            feed_forward=_FIELDS.feed_forward(),
            dense=None,
            constants=f.Stated(),
        ),
        {"YoutuForCausalLM": language_modeling(tied=True, bias=False), "YoutuModel": BODY},
        fixed=latent_fixed(_FIELDS, "sigmoid"),
        ignored=("embedding_initializer_range", "mlp_bias"),
    ),
)
