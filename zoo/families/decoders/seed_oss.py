"""Seed-OSS (ByteDance Seed team, 2025): ``SeedOssConfig``, ``SeedOssModel`` and its heads."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import LLAMA, LlamaFields

_FIELDS = LlamaFields(
    vocab_size=155136, intermediate_size=27648, layers=64, heads=80, kv_heads=8, head_dim=128, context=524288
)
_INPUT = f.Bool("attention_bias", default=True)
_OUTPUT = f.Bool("attention_out_bias", default=False)
_ATTENTION = {
    "bias": {"query": _INPUT, "key": _INPUT, "value": _INPUT, "output": _OUTPUT},
    "dropout": f.Float("attention_dropout", default=0.1),
}

FAMILIES = (
    Family(
        "seed_oss",
        LLAMA,
        _FIELDS.body(
            attention=_ATTENTION,
            feed_forward=_FIELDS.feed_forward(bias=f.Bool("mlp_bias", default=False)),
            dropout=f.Float("residual_dropout", default=0.1),
        ),
        decoder_classes("SeedOss"),
    ),
)
