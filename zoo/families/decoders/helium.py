"""Helium (Kyutai, 2025): ``HeliumConfig``, ``HeliumModel`` and its heads: Llama that rotates neighbouring dimensions."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.attention import per_head
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import LLAMA, WHOLE_HEADS, LlamaFields

_FIELDS = LlamaFields(
    vocab_size=48000, hidden_size=2560, intermediate_size=7040, layers=24, heads=20, kv_heads=20, head_dim=128,
    context=4096, eps=1e-8,
)  # fmt: skip
_BIAS = f.Bool("attention_bias", default=False)

FAMILIES = (
    Family(
        "helium",
        LLAMA,
        _FIELDS.body(
            attention={"bias": {"query": _BIAS, "key": _BIAS, "value": _BIAS, "output": False}},
            feed_forward=_FIELDS.feed_forward(bias=f.Bool("mlp_bias", default=False)),
            position=_FIELDS.rope(theta=100000.0, whole=WHOLE_HEADS, layout="interleaved"),
        ),
        decoder_classes("Helium", without=("ForQuestionAnswering",)),
        fixed={
            "head_dim": (
                per_head(_FIELDS.d_model, _FIELDS.heads.heads),
                "the output projection of the reference is square",
            )
        },
    ),
)
