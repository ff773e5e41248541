"""GTE (Zhang et al., 2024, mGTE): ``GteConfig``, ``GteModel`` and its heads.

BERT with rotary positions and gated feed-forwards, whose last layer alone has a bias.
"""

from __future__ import annotations

from dataclasses import replace

from zoo.families.common import fields as f
from zoo.families.common.decoders import query_key_value
from zoo.families.common.encoders import CLASSIFIER_DROPOUT, BertFields, classification, masked, masked_rules
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, token_classes
from zoo.families.common.held import unfused
from zoo.families.common.tensors import Tensors, affine, fused, modules, weights

_BODY = BertFields(vocab_size=250048, attention_dropout=0.0).rotary_body(
    160000.0,
    context=8192,
    feed_forward={
        "kind": "gated",
        "bias": "output",
        "dropout": f.Float("hidden_dropout_prob", default=0.1),
    },
    token_types=f.Int("type_vocab_size", default=1),
)

_STORED, _BLOCK = "encoder.layer.{layer}.", "encoder.blocks.{layer}."
_LAYER = {
    "attention.o_proj": "attention.output",
    "attn_ln": "attention_norm",
    "mlp.down_proj": "feed_forward.down",
    "mlp_ln": "feed_forward_norm",
}
_TENSORS = Tensors(
    "gte",
    (
        *weights(
            {"word_embeddings": "token", "token_type_embeddings": "token_type"}, "embeddings.", "embedding."
        ),
        *affine("embeddings.LayerNorm", "embedding.norm"),
        *fused(f"{_STORED}attention.qkv_proj", query_key_value("encoder.blocks.{layer}")),
        *fused(f"{_STORED}mlp.up_gate_proj", (f"{_BLOCK}feed_forward.up", f"{_BLOCK}feed_forward.gate")),
        *modules(_LAYER, _STORED, _BLOCK),
    ),
    prefix="gte.",
    outside=("lm_head.", "classifier."),
    heads={
        "masked_language_modeling": masked_rules("lm_head.dense", "lm_head.norm", "lm_head.decoder"),
        "classification": modules({"pooler.dense": "head.dense", "classifier": "head.labels"}),
        "token_classification": affine("classifier", "head.labels"),
    },
    optional=("pooler.*", "lm_head.*", "classifier.*"),
)

_APART = {
    **{
        f"{_STORED}self_attn.{part[0]}_proj": f"{_BLOCK}attention.{part}"
        for part in ("query", "key", "value")
    },
    **{f"{_STORED}mlp.{part}_proj": f"{_BLOCK}feed_forward.{part}" for part in ("up", "gate")},
}
_IN_MEMORY = unfused(
    _TENSORS,
    {name.replace("encoder.layer.", "layers."): ours for name, ours in _APART.items()},
    (r"encoder\.layer\.", "layers."),
    (r"attention\.o_proj", "self_attn.o_proj"),
    ("attn_ln", "post_attention_layernorm"),
    ("mlp_ln", "post_mlp_layernorm"),
    (r"lm_head\.norm", "lm_head.layer_norm"),
)

_OF_CODE = (
    "layer_norm_type",
    "logn_attention_clip1",
    "pack_qkv",
    "unpad_inputs",
    "use_memory_efficient_attention",
)

FAMILIES = (
    Family(
        "gte",
        replace(_TENSORS, other=_IN_MEMORY),
        _BODY,
        {
            "GteModel": BODY,
            "GteForMaskedLM": masked("gelu"),
            "GteForSequenceClassification": classification("tanh"),
            "GteForTokenClassification": token_classes(CLASSIFIER_DROPOUT),
        },
        fixed={
            "position_embedding_type": ("rope", "positions are always rotary"),
            "logn_attention_scale": (False, "the present class has no field for it"),
        },
        ignored=("classifier_dropout", *_OF_CODE),
    ),
)
