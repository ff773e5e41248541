"""MPNet (Song et al., 2020): ``MPNetConfig``, ``MPNetModel`` and its heads.

RoBERTa without token types, and with T5's bias of relative positions, one for all layers, beside the learned positions.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.encoders import (
    NORM,
    ROBERTA_HEADS,
    ROBERTA_OPTIONAL,
    ROBERTA_OUTSIDE,
    classifiers,
    masked,
    pooler,
)
from zoo.families.common.family import Family
from zoo.families.common.layers import Layers
from zoo.families.common.tensors import Rule, Tensors, modules, projections, same

_OFFSET = 2
_BUCKETS = 32
_DROPOUT = f.Float("hidden_dropout_prob", default=0.1)
_BODY = {
    "architecture": "encoder",
    "vocab_size": f.Int("vocab_size", default=30527),
    "d_model": f.Int("hidden_size", default=768),
    "context_length": f.Rows("max_position_embeddings", default=512, start=_OFFSET),
    "position": {"kind": "learned", "offset": _OFFSET},
    "embedding": {"norm": NORM, "dropout": _DROPOUT},
    "encoder": Layers(
        f.Depth("num_hidden_layers", default=12),
        {
            "kind": "post_norm",
            "norm": NORM,
            "attention": multi_head(
                12,
                dropout=f.Float("attention_probs_dropout_prob", default=0.1),
                position={"kind": "relative_bias", "buckets": _BUCKETS, "max_distance": 128},
            ),
            "feed_forward": mlp(3072, "gelu"),
            "dropout": _DROPOUT,
        },
    ),
    "initialization": f.normal(),
}

_LAYER = {
    **projections("attention.attn.", "q k v o"),
    "attention.LayerNorm": "attention_norm",
    "intermediate.dense": "feed_forward.up",
    "output.dense": "feed_forward.down",
    "output.LayerNorm": "feed_forward_norm",
}
_TENSORS = Tensors(
    "mpnet",
    (
        *modules({"word_embeddings": "token", "LayerNorm": "norm"}, "embeddings.", "embedding."),
        same("embeddings.position_embeddings.weight", "embedding.position.table.weight"),
        *modules(_LAYER, "encoder.layer.{layer}.", "encoder.blocks.{layer}."),
        Rule(
            "encoder.relative_attention_bias.weight",
            ("encoder.blocks.{layer}.attention.position.table.weight",),
        ),
    ),
    prefix="mpnet.",
    outside=ROBERTA_OUTSIDE,
    heads=ROBERTA_HEADS,
    optional=ROBERTA_OPTIONAL,
    unused=("embeddings.position_ids",),
)

FAMILIES = (
    Family(
        "mpnet",
        _TENSORS,
        _BODY,
        {
            "MPNetModel": pooler(),
            "MPNetForMaskedLM": masked("gelu"),
            **classifiers("MPNet", "tanh", _DROPOUT),
        },
        fixed={
            "relative_attention_num_buckets": (
                _BUCKETS,
                "the reference computes with as many, whatever it says",
            ),
        },
    ),
)
