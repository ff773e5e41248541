"""Phi-1, Phi-1.5 and Phi-2 (Gunasekar et al., 2023): ``PhiConfig``, ``PhiModel`` and its heads."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.attention import Heads
from zoo.families.common.blocks import mlp
from zoo.families.common.decoders import ROTATIONS, decoder_tensors, layer_norm
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.layers import Layers
from zoo.families.common.rope import RopeField
from zoo.families.common.tensors import modules, projections

_D_MODEL = f.Int("hidden_size", default=2048)
_HEADS = Heads(_D_MODEL, f.Int("num_attention_heads", default=32), has_head_dim=False)
_CONTEXT = f.ContextLength("max_position_embeddings", default=2048)
_NORM = layer_norm("layer_norm_eps")
_BODY = {
    "architecture": "decoder",
    "vocab_size": f.Int("vocab_size", default=51200),
    "d_model": _D_MODEL,
    "context_length": _CONTEXT,
    "position": RopeField(_HEADS.width, _CONTEXT, fraction=0.5),
    "embedding": {"dropout": f.Float("embd_pdrop", default=0.0)},
    "decoder": Layers(
        f.Depth("num_hidden_layers", default=24),
        {
            "kind": "parallel",
            "norm": _NORM,
            "attention": {
                "*": _HEADS,
                "qk_norm": f.When(f.Bool("qk_layernorm", default=False), {"norm": _NORM, "over": "head"}),
                "dropout": f.Float("attention_dropout", default=0.0),
            },
            "feed_forward": mlp(8192, "gelu_new"),
            "dropout": f.Float("resid_pdrop", default=0.0),
        },
    ),
    "initialization": f.normal(),
}

_LAYER = {
    "input_layernorm": "norm",
    **projections("self_attn.", "q_proj k_proj v_proj dense"),
    "self_attn.q_layernorm": "attention.query_norm",
    "self_attn.k_layernorm": "attention.key_norm",
    "mlp.fc1": "feed_forward.up",
    "mlp.fc2": "feed_forward.down",
}
_TENSORS = decoder_tensors(
    "phi",
    "model.",
    *modules({"embed_tokens": "embedding.token", "final_layernorm": "decoder.final_norm"}),
    *modules(_LAYER, "layers.{layer}.", "decoder.blocks.{layer}."),
    tokens="score",
    unused=ROTATIONS,
)

FAMILIES = (
    Family("phi", _TENSORS, _BODY, decoder_classes("Phi", bias=True, without=("ForQuestionAnswering",))),
)
