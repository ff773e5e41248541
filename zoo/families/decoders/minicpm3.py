"""MiniCPM3 (OpenBMB, 2024): ``MiniCPM3Config``, ``MiniCPM3Model`` and its heads: latent attention, and constant factors on embeddings,
branches and scores."""

from __future__ import annotations

import math

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import LlamaFields
from zoo.families.common.rope import RopeField
from zoo.families.decoders.deepseek import LATENT_TENSORS, LatentDims, latent_attention

_FIELDS = LlamaFields(
    vocab_size=73448, hidden_size=2560, intermediate_size=6400, layers=62, heads=40, context=32768, eps=1e-5
)
_DIMS = LatentDims(query_rank=768, kv_rank=256, head_dim=64, rope_dim=32)
_ROPE = RopeField(_DIMS.rotated, _FIELDS.context, whole="qk_rope_head_dim says what is rotated")
_EVEN = f.Derived(lambda config: _FIELDS.d_model.read(config) // max(_FIELDS.heads.heads.read(config), 1))


_BRANCHES = f.Computed(
    f.Float("scale_depth", default=1.4, null=True),
    lambda scale, config: 1.0 if scale is None else scale / math.sqrt(max(_FIELDS.depth.read(config), 1)),
    lambda scale, context: None if scale == 1.0 else float(f"{scale * math.sqrt(context.stack.depth):.15g}"),
)
"""The factor on branches: scale_depth over the square root of the number of layers; null for 1."""


def _factor(base: int | None, config: Config) -> float | None:
    """The factor on scores: dim_model_base over the width of the model; null for 1."""
    width: int = _FIELDS.d_model.read(config)
    return None if base in (None, width) else base / width


_SCORES = f.Computed(
    f.Int("dim_model_base", default=256, null=True),
    _factor,
    lambda factor, context: None if factor is None else round(factor * context.model.d_model),
)

FAMILIES = (
    Family(
        "minicpm3",
        LATENT_TENSORS,
        _FIELDS.body(
            attention={**latent_attention(_FIELDS, _ROPE, _DIMS), "value_dim": f.Int("v_head_dim", default=_EVEN)},
            feed_forward=_FIELDS.feed_forward(bias=f.Bool("mlp_bias", default=False)),
            position=_ROPE,
            residual={"kind": "add", "scale": _BRANCHES},
            more={"embedding": {"scale": f.Factor("scale_emb", default=12.0)}},
        ),
        decoder_classes("MiniCPM3", tied=True, scale=_SCORES, without=("ForTokenClassification", "ForQuestionAnswering")),
        fixed={
            "num_key_value_heads": (_FIELDS.heads.heads, "every head has keys and values of its own"),
            "head_dim": (_DIMS.rotated, "it is what is rotated, qk_rope_head_dim"),
            "qk_head_dim": (_DIMS.width, "it is qk_nope_head_dim + qk_rope_head_dim"),
        },
        ignored=("dim_model_base", "pretraining_tp"),  # the first by the body alone
    ),
)  # fmt: skip
