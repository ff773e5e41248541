"""Jina Embeddings 3 (Sturua et al., 2024): ``JinaEmbeddingsV3Config``, ``JinaEmbeddingsV3Model`` and its heads.

XLM-RoBERTa with rotary positions. Adapters are stored beside its checkpoints, and are not part of the class.
"""

from __future__ import annotations

from dataclasses import replace

from zoo.families.common.decoders import layer_norm, query_key_value
from zoo.families.common.encoders import (
    ROBERTA_HEADS,
    ROBERTA_OPTIONAL,
    ROBERTA_OUTSIDE,
    BertFields,
    TokenTypes,
    classifiers,
    masked,
    pooler,
)
from zoo.families.common.family import Family
from zoo.families.common.held import unfused
from zoo.families.common.tensors import Tensors, affine, fused, modules, weights

_NORM = layer_norm("layer_norm_eps", default=1e-5)
_FIELDS = BertFields(vocab_size=250002, d_model=1024, heads=16, hidden=4096, depth=24)
_BODY = _FIELDS.rotary_body(
    20000.0,
    context=8194,
    norm=_NORM,
    token_types=TokenTypes("type_vocab_size", default=1),
)

_STORED, _BLOCK = "encoder.layers.{layer}.", "encoder.blocks.{layer}."
_LAYER = {
    "mixer.out_proj": "attention.output",
    "norm1": "attention_norm",
    "mlp.fc1": "feed_forward.up",
    "mlp.fc2": "feed_forward.down",
    "norm2": "feed_forward_norm",
}
_TENSORS = Tensors(
    "jina_embeddings_v3",
    (
        *weights(
            {"word_embeddings": "token", "token_type_embeddings": "token_type"}, "embeddings.", "embedding."
        ),
        *affine("emb_ln", "embedding.norm"),
        *fused(f"{_STORED}mixer.Wqkv", query_key_value("encoder.blocks.{layer}")),
        *modules(_LAYER, _STORED, _BLOCK),
    ),
    prefix="roberta.",
    outside=ROBERTA_OUTSIDE,
    heads=ROBERTA_HEADS,
    optional=ROBERTA_OPTIONAL,
)

_IN_MEMORY = unfused(
    _TENSORS,
    {
        f"{_STORED[8:]}self_attn.{part[0]}_proj": f"{_BLOCK}attention.{part}"
        for part in ("query", "key", "value")
    },
    (r"encoder\.layers", "layers"),
    ("emb_ln", "embeddings.LayerNorm"),
    (r"mixer\.out_proj", "self_attn.o_proj"),
    ("norm1", "post_attention_layernorm"),
    ("norm2", "post_mlp_layernorm"),
)

FAMILIES = (
    Family(
        "jina_embeddings_v3",
        replace(_TENSORS, other=_IN_MEMORY),
        _BODY,
        {
            "JinaEmbeddingsV3Model": pooler(),
            "JinaEmbeddingsV3ForMaskedLM": masked("gelu", _NORM),
            **classifiers("JinaEmbeddingsV3", "tanh"),
        },
        ignored=("classifier_dropout",),  # of some heads
    ),
)
