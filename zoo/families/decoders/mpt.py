"""MPT (MosaicML, 2023): ``MptConfig``, ``MptModel`` and its heads: no biases, ALiBi, and queries, keys and values stored as one.

The reference reads three fields of ``attn_config``; the others must have the value that it assumes.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.blocks import multi_head
from zoo.families.common.decoders import decoder_tensors, layer_norm, query_key_value
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.layers import Layers
from zoo.families.common.template import Field
from zoo.families.common.tensors import Rule, weights
from zoo.families.common.transforms import STACKED

_SWITCHES = {
    "alibi": (True, "the reference always adds ALiBi"),
    "alibi_bias_max": (8, "the reference has the slopes of 8"),
    "qk_ln": (False, "the reference has no norms of queries and keys"),
    "prefix_lm": (False, "the reference is causal"),
    "attn_uses_sequence_id": (False, "the reference does not read this field"),
    "attn_type": ("multihead_attention", "the reference has no other"),
}


def _stated(field: Field) -> f.Inside:
    return f.Inside("attn_config", field)


_DROPOUT = _stated(
    f.Mapped(
        f.Float("attn_pdrop", default=0.0),
        lambda dropout: dropout,
        lambda dropout: dropout or 0,  # a whole number, which alone the reference takes
    )
)
_D_MODEL = f.Int("d_model", "hidden_size", default=2048)
_BODY = {
    "architecture": "decoder",
    "vocab_size": f.Int("vocab_size", default=50368),
    "d_model": _D_MODEL,
    "context_length": f.ContextLength("max_seq_len", default=2048),
    "position": {"kind": "alibi"},
    "decoder": Layers(
        f.Depth("n_layers", "num_hidden_layers", default=24),
        {
            "kind": "pre_norm",
            "norm": layer_norm("layer_norm_epsilon", bias=False),
            "attention": multi_head(
                f.Int("n_heads", "num_attention_heads", default=16),
                dropout=_DROPOUT,
                bias=False,
                scale=_stated(f.Float("softmax_scale", null=True)),
                clip=_stated(f.Float("clip_qkv", null=True)),
            ),
            "feed_forward": {
                "kind": "mlp",
                "hidden": f.times(4, _D_MODEL),
                "activation": "gelu",
                "bias": False,
            },
            "dropout": f.Derived(_DROPOUT.read),
        },
    ),
    "initialization": f.normal(),
}

_STORED, _BLOCK = "blocks.{layer}", "decoder.blocks.{layer}"
_LAYER = {
    "norm_1": "attention_norm",
    "attn.out_proj": "attention.output",
    "norm_2": "feed_forward_norm",
    "ffn.up_proj": "feed_forward.up",
    "ffn.down_proj": "feed_forward.down",
}
_TENSORS = decoder_tensors(
    "mpt",
    "transformer.",
    *weights({"wte": "embedding.token", "norm_f": "decoder.final_norm"}),
    *weights(_LAYER, f"{_STORED}.", f"{_BLOCK}."),
    Rule(
        f"{_STORED}.attn.Wqkv.weight",
        tuple(f"{module}.weight" for module in query_key_value(_BLOCK)),
        STACKED,
    ),
)

_HEADS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
_PUBLISHED = decoder_classes("MPT", tied=True, without=("Model", *_HEADS))
"""The class that published configs name, whose code came with them."""

FAMILIES = (
    Family(
        "mpt",
        _TENSORS,
        _BODY,
        {**decoder_classes("Mpt", tied=True), **_PUBLISHED},
        fixed={
            **{f"attn_config.{name}": fixed for name, fixed in _SWITCHES.items()},
            "expansion_ratio": (4, "the reference supports no other width"),
            "no_bias": (True, "the reference has no biases"),
            "logit_scale": (None, "the reference does not scale scores of tokens"),
            "embedding_fraction": (1.0, "the reference does not read this field"),
        },
        ignored=(
            "learned_pos_emb",
            "resid_pdrop",
            "emb_pdrop",
            "norm_type",
            "init_device",
            "attn_config.attn_impl",
        ),  # of no effect in the reference
    ),
)
