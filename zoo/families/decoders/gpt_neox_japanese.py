"""GPT-NeoX-Japanese (ABEJA, 2022): ``GPTNeoXJapaneseConfig``, ``GPTNeoXJapaneseModel`` and its head.

GPT-NeoX without biases, but for one after the attention of the last layer.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.attention import per_head
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.decoders import grouped, layer_norm, query_key_value
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.layers import FixedLayers, Layers
from zoo.families.common.rope import RopeField
from zoo.families.common.tensors import Tensors, fused, modules, same

_D_MODEL = f.Int("hidden_size", default=2560)
_HEADS = f.Int("num_attention_heads", default=32)
_CONTEXT = f.ContextLength("max_position_embeddings", default=2048)
_DROPOUT = f.Float("hidden_dropout", default=0.0)
_MULTIPLE = f.Int("intermediate_multiple_size", default=4)


_LAST = FixedLayers(
    "last",
    {"attention": {"bias": {"query": False, "key": False, "value": False, "output": True}}},
    lambda layer, depth: layer == depth - 1,
    lambda block: bool(getattr(getattr(block.attention, "bias", None), "output", False)),
    "a bias after the attention of other layers than the last",
)
"""The last layer, whose attention ends with a bias."""

_STORED, _BLOCK = "layers.{layer}", "decoder.blocks.{layer}"
_LAYER = {
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "feed_forward_norm",
    "mlp.dense_h_to_4h": "feed_forward.up",
    "mlp.dense_4h_to_h": "feed_forward.down",
}
_TENSORS = Tensors(
    "gpt_neox_japanese",
    (
        *modules({"embed_in": "embedding.token", "final_layer_norm": "decoder.final_norm"}),
        *modules(_LAYER, f"{_STORED}.", f"{_BLOCK}."),
        same(f"{_STORED}.attention.dense.weight", f"{_BLOCK}.attention.output.weight"),
        same(f"{_STORED}.attention.dense_bias", f"{_BLOCK}.attention.output.bias"),
        *fused(f"{_STORED}.attention.query_key_value", query_key_value(_BLOCK), grouped, grouped),
    ),
    prefix="gpt_neox_japanese.",
    outside=("embed_out.",),
    heads={
        "language_modeling": (same("embed_out.weight", "head.vocabulary.weight", also=("lm_head.weight",)),)
    },
    optional=("embed_out.*",),
    unused=(
        "layers.*.attention.bias",
        "layers.*.attention.masked_bias",
        "layers.*.attention.rotary_emb.inv_freq",
    ),
)

FAMILIES = (
    Family(
        "gpt_neox_japanese",
        _TENSORS,
        {
            "architecture": "decoder",
            "vocab_size": f.Int("vocab_size", default=32000),
            "d_model": _D_MODEL,
            "context_length": _CONTEXT,
            "position": RopeField(
                per_head(_D_MODEL, _HEADS), _CONTEXT, names=("rotary_emb_base", "rotary_pct")
            ),
            "decoder": Layers(
                f.Depth("num_hidden_layers", default=32),
                {
                    "kind": "pre_norm",
                    "norm": layer_norm("layer_norm_eps"),
                    "attention": multi_head(
                        _HEADS, dropout=f.Float("attention_dropout", default=0.1), bias=False
                    ),
                    "feed_forward": mlp(f.Multiple(_MULTIPLE, _D_MODEL), "gelu", bias=False),
                    "dropout": _DROPOUT,
                },
                (_LAST,),
            ),
            "initialization": f.normal(),
        },
        {
            "GPTNeoXJapaneseForCausalLM": language_modeling(tied=True, bias=False),
            "GPTNeoXJapaneseModel": BODY,
        },
        fixed={"is_decoder": (False, "which the reference itself does not look at")},
    ),
)
