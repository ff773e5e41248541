"""BLOOM (BigScience, 2022): ``BloomConfig``, ``BloomModel`` and its heads.

Queries, keys and values are stored as one, head by head.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.blocks import multi_head
from zoo.families.common.decoders import decoder_tensors, grouped, layer_norm, query_key_value
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.layers import Layers
from zoo.families.common.tensors import fused, modules

_D_MODEL = f.Int("n_embed", "hidden_size", default=64, written=("hidden_size",))
_NORM = layer_norm("layer_norm_epsilon")
_BODY = {
    "architecture": "decoder",
    "vocab_size": f.Int("vocab_size", default=250880),
    "d_model": _D_MODEL,
    "context_length": f.Int("seq_length"),
    "position": {"kind": "alibi"},
    "embedding": {"norm": _NORM},
    "decoder": Layers(
        f.Depth("n_layer", "num_hidden_layers", default=2),
        {
            "kind": f.Choice(
                "apply_residual_connection_post_layernorm",
                {False: "pre_norm", True: "normed_residual"},
                default=False,
            ),
            "norm": _NORM,
            "attention": multi_head(
                f.Int("n_head", "num_attention_heads", default=8),
                dropout=f.Float("attention_dropout", default=0.0),
            ),
            "feed_forward": {"kind": "mlp", "hidden": f.times(4, _D_MODEL), "activation": "gelu_tanh"},
            "dropout": f.Float("hidden_dropout", default=0.0),
        },
    ),
    "initialization": f.normal(),
}

_STORED, _BLOCK = "h.{layer}", "decoder.blocks.{layer}"
_LAYER = {
    "input_layernorm": "attention_norm",
    "self_attention.dense": "attention.output",
    "post_attention_layernorm": "feed_forward_norm",
    "mlp.dense_h_to_4h": "feed_forward.up",
    "mlp.dense_4h_to_h": "feed_forward.down",
}
_TENSORS = decoder_tensors(
    "bloom",
    "transformer.",
    *modules(
        {
            "word_embeddings": "embedding.token",
            "word_embeddings_layernorm": "embedding.norm",
            "ln_f": "decoder.final_norm",
        }
    ),
    *modules(_LAYER, f"{_STORED}.", f"{_BLOCK}."),
    *fused(f"{_STORED}.self_attention.query_key_value", query_key_value(_BLOCK), grouped, grouped),
)

FAMILIES = (
    Family(
        "bloom",
        _TENSORS,
        _BODY,
        decoder_classes("Bloom", tied=True),
        fixed={
            "n_inner": (f.times(4, _D_MODEL), "the reference supports no other width"),
        },
        ignored=(
            "slow_but_exact", "attention_softmax_in_fp32", "masked_softmax_fusion", "bias_dropout_fusion",
            "skip_bias_add", "skip_bias_add_qkv", "offset_alibi",
        ),
    ),
)  # fmt: skip
