"""GPT-NeoX (Black et al., 2022) and Pythia (Biderman et al., 2023): ``GPTNeoXConfig``, ``GPTNeoXModel`` and its heads.

Queries, keys and values are stored as one, head by head.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.attention import per_head
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.decoders import (
    OPTIONAL,
    OUTSIDE,
    decoder_heads,
    decoder_tensors,
    grouped,
    layer_norm,
    query_key_value,
)
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.layers import Layers
from zoo.families.common.rope import RopeField
from zoo.families.common.tensors import fused, modules, same

_D_MODEL = f.Int("hidden_size", default=6144)
_HEADS = f.Int("num_attention_heads", default=64)
_CONTEXT = f.ContextLength("max_position_embeddings", default=2048)
_DROPOUT = f.Float("hidden_dropout", default=0.0)
_BODY = {
    "architecture": "decoder",
    "vocab_size": f.Int("vocab_size", default=50432),
    "d_model": _D_MODEL,
    "context_length": _CONTEXT,
    "position": RopeField(
        per_head(_D_MODEL, _HEADS), _CONTEXT, fraction=0.25, names=("rotary_emb_base", "rotary_pct")
    ),
    "embedding": {"dropout": _DROPOUT},
    "decoder": Layers(
        f.Depth("num_hidden_layers", default=44),
        {
            "*": f.Kinds(
                f.Bool("use_parallel_residual", default=True),
                {True: {"kind": "parallel", "norms": "separate"}, False: {"kind": "pre_norm"}},
            ),
            "norm": layer_norm("layer_norm_eps"),
            "attention": multi_head(
                _HEADS,
                dropout=f.Float("attention_dropout", default=0.0),
                bias=f.Bias("attention_bias", default=True),
            ),
            "feed_forward": mlp(24576, "gelu"),
            "dropout": _DROPOUT,
        },
    ),
    "initialization": f.normal(),
}

_STORED, _BLOCK = "layers.{layer}", "decoder.blocks.{layer}"
_LAYER = {
    "input_layernorm": "attention_norm",
    "attention.dense": "attention.output",
    "post_attention_layernorm": "feed_forward_norm",
    "mlp.dense_h_to_4h": "feed_forward.up",
    "mlp.dense_4h_to_h": "feed_forward.down",
}
_SCORES = same("embed_out.weight", "head.vocabulary.weight", also=("lm_head.weight",))
_TENSORS = decoder_tensors(
    "gpt_neox",
    "gpt_neox.",
    *modules({"embed_in": "embedding.token", "final_layer_norm": "decoder.final_norm"}),
    *modules(_LAYER, f"{_STORED}.", f"{_BLOCK}."),
    *fused(f"{_STORED}.attention.query_key_value", query_key_value(_BLOCK), grouped, grouped),
    heads={**decoder_heads(), "language_modeling": (_SCORES,)},
    outside=("embed_out.", *OUTSIDE),
    optional=("embed_out.*", *OPTIONAL),
    unused=(
        "layers.*.attention.bias",
        "layers.*.attention.masked_bias",
        "layers.*.attention.rotary_emb.inv_freq",
    ),
)

FAMILIES = (
    Family(
        "gpt_neox",
        _TENSORS,
        _BODY,
        decoder_classes("GPTNeoX"),
        fixed={"is_decoder": (False, "which the reference itself does not look at")},
        ignored=("classifier_dropout", "attention_probs_dropout_prob", "hidden_dropout_prob"),
    ),
)
