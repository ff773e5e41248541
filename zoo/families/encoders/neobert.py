"""NeoBERT (Le Breton et al., 2025): ``NeoBERTConfig``, ``NeoBERT`` and its heads, whose code is published with the checkpoint.

An encoder with Llama's norms, rotary positions in pairs of neighbours, and gated feed-forwards of two thirds of the stated width.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.attention import per_head
from zoo.families.common.decoders import grouped, query_key_value
from zoo.families.common.encoders import classification
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY
from zoo.families.common.layers import Layers
from zoo.families.common.template import UnfitError
from zoo.families.common.tensors import Tensors, affine, fused, modules, weights


def _two_thirds(width: int) -> int:
    return 8 * -(-int(2 * width / 3) // 8) or 8


def _stated(hidden: int) -> int:
    if hidden % 8:
        raise UnfitError(f"feed_forward.hidden {hidden}: it has multiples of 8")
    return 3 * hidden // 2


_HIDDEN = f.Mapped(f.Positive("intermediate_size", default=3072), _two_thirds, _stated)
"""The width of a gated feed-forward: two thirds of the stated one, as a multiple of 8."""
_D_MODEL = f.Int("hidden_size", default=768)
_HEADS = f.Int("num_attention_heads", default=12)
_DROPOUT = f.Float("dropout", default=0.0)
_CLASSIFIER_DROPOUT = f.Float("classifier_dropout", default=0.1)
_BODY = {
    "architecture": "encoder",
    "vocab_size": f.Int("vocab_size", default=30522),
    "d_model": _D_MODEL,
    "context_length": f.ContextLength("max_length", default=1024),
    "position": {"kind": "rope", "layout": "interleaved"},
    "embedding": {"token_types": 0},
    "encoder": Layers(
        f.Depth("num_hidden_layers", default=28),
        {
            "kind": "pre_norm",
            "norm": {"kind": "rms_norm", "eps": f.Float("norm_eps", default=1e-6)},
            "attention": {"kind": "multi_head", "heads": _HEADS, "bias": False},
            "feed_forward": {"kind": "gated", "hidden": _HIDDEN, "activation": "silu", "bias": False},
            "dropout": _DROPOUT,
        },
    ),
}
_MASKED = {"activation": None, "tie_embeddings": False, "bias": True}

_STORED, _BLOCK = "transformer_encoder.{layer}.", "encoder.blocks.{layer}."
_GATED = (f"{_BLOCK}feed_forward.gate", f"{_BLOCK}feed_forward.up")
_TENSORS = Tensors(
    "neobert",
    (
        *weights({"encoder": "embedding.token", "layer_norm": "encoder.final_norm"}),
        *fused(f"{_STORED}qkv", query_key_value(_BLOCK.removesuffix(".")), grouped, grouped),
        *fused(f"{_STORED}ffn.w12", _GATED),
        *weights(
            {
                "wo": "attention.output",
                "ffn.w3": "feed_forward.down",
                "attention_norm": "attention_norm",
                "ffn_norm": "feed_forward_norm",
            },
            _STORED,
            _BLOCK,
        ),
    ),
    prefix="model.",
    outside=("decoder.", "dense.", "classifier."),
    heads={
        "masked_language_modeling": affine("decoder", "head.vocabulary"),
        "classification": modules({"dense": "head.dense", "classifier": "head.labels"}),
    },
    optional=("decoder.*", "dense.*", "classifier.*"),
)

_UNLIKE = "the published class has no other"

FAMILIES = (
    Family(
        "neobert",
        _TENSORS,
        _BODY,
        {
            "NeoBERTLMHead": HeadClass("masked_language_modeling", _MASKED),
            "NeoBERT": BODY,
            "NeoBERTForSequenceClassification": classification("tanh", _CLASSIFIER_DROPOUT),
        },
        fixed={
            "hidden_act": ("SwiGLU", _UNLIKE),
            "rms_norm": (True, _UNLIKE),
            "rope": (True, _UNLIKE),
            "ngpt": (False, "models on the unit sphere are not supported"),
            "dim_head": (per_head(_D_MODEL, _HEADS), "heads divide the width of the model evenly"),
        },
        ignored=(
            *(f"{part}_init_range" for part in ("embedding", "decoder", "classifier")),
            "classifier_dropout",
            "flash_attention",
            "base_scale",
            "kwargs",
        ),
    ),
)
