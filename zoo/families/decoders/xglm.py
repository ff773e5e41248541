"""XGLM (Lin et al., 2021): ``XGLMConfig``, ``XGLMModel`` and its head: BART's decoder alone, with sinusoids from position 2."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.decoders import decoder_tensors
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.layers import Layers
from zoo.families.common.tensors import modules, projections

_START = 2
_ZERO = f.Mapped(
    f.Int("pad_token_id", default=1),
    lambda padding: padding - _START if padding >= _START else None,
    lambda position: None if position is None else position + _START,
)
"""The position whose row of the table is the padding token's, which is zero."""

"""The row of the first position in the reference's table."""

_NORM = {"kind": "layer_norm", "eps": 1e-5}
_BODY = {
    "architecture": "decoder",
    "vocab_size": f.Int("vocab_size", default=256008),
    "d_model": f.Int("d_model", "hidden_size", default=1024),
    "context_length": f.ContextLength("max_position_embeddings", default=2048),
    "position": {
        "kind": "sinusoidal",
        "layout": "half_split",
        "spacing": "tensor2tensor",
        "offset": _START,
        "zero": _ZERO,
    },
    "embedding": {
        "scale": f.When(f.Bool("scale_embedding", default=True), "sqrt_d_model"),
        "dropout": f.Float("dropout", default=0.1),
    },
    "decoder": Layers(
        f.Depth("num_layers", "num_hidden_layers", default=24),
        {
            "kind": "pre_norm",
            "norm": _NORM,
            "attention": multi_head(
                f.Int("attention_heads", "num_attention_heads", default=16),
                dropout=f.Float("attention_dropout", default=0.1),
            ),
            "feed_forward": mlp(
                f.Int("ffn_dim", default=4096),
                f.Activation("activation_function", "gelu"),
                dropout=f.Float("activation_dropout", default=0.0),
            ),
            "dropout": f.Float("dropout", default=0.1),
        },
    ),
    "initialization": f.normal("init_std"),
}

_LAYER = {
    "self_attn_layer_norm": "attention_norm",
    **projections("self_attn."),
    "final_layer_norm": "feed_forward_norm",
    "fc1": "feed_forward.up",
    "fc2": "feed_forward.down",
}
_TENSORS = decoder_tensors(
    "xglm",
    "model.",
    *modules({"embed_tokens": "embedding.token", "layer_norm": "decoder.final_norm"}),
    *modules(_LAYER, "layers.{layer}.", "decoder.blocks.{layer}."),
    unused=("embed_positions.weights",),
)
_WITHOUT = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")

FAMILIES = (
    Family(
        "xglm",
        _TENSORS,
        _BODY,
        decoder_classes("XGLM", tied=True, without=_WITHOUT),
        fixed={"add_cross_attention": (False, "a decoder that attends to an encoder is an encoder-decoder")},
        ignored=("layerdrop", "decoder_start_token_id"),
    ),
)
