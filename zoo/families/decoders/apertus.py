"""Apertus (Swiss AI Initiative, 2025): ``ApertusConfig``, ``ApertusModel`` and its heads: xIELU without gates, normed heads."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import (
    BLOCK,
    LAYER,
    WHOLE_HEADS,
    LlamaFields,
    layer_modules,
    llama_tensors,
)
from zoo.families.common.rope import RopeParameters
from zoo.families.common.tensors import same

_FIELDS = LlamaFields(vocab_size=131072, intermediate_size=14336, context=65536, eps=1e-5)
_SCALING = {
    "rope_type": "llama3", "rope_theta": 12000000.0, "factor": 8.0, "original_max_position_embeddings": 8192,
    "low_freq_factor": 1.0, "high_freq_factor": 4.0,
}  # fmt: skip
_XIELU = ("alpha_p", "alpha_n", "beta", "eps")

FAMILIES = (
    Family(
        "apertus",
        llama_tensors(
            "apertus",
            *layer_modules(
                {"attention_layernorm": "attention_norm", "feedforward_layernorm": "feed_forward_norm"}
            ),
            *(
                same(f"{LAYER}mlp.act_fn.{leaf}", f"{BLOCK}feed_forward.inner.activation.{leaf}")
                for leaf in _XIELU
            ),
            without=("input_layernorm", "post_attention_layernorm", "gate_proj"),
        ),
        _FIELDS.body(
            attention={"bias": f.Bias("attention_bias", default=False), "qk_norm": _FIELDS.qk_norm},
            feed_forward=mlp(
                _FIELDS.hidden,
                f.Choice("hidden_act", {"xielu": "xielu", **f.ACTIVATIONS}, "xielu"),
                bias=False,
            ),
            position=_FIELDS.rope(
                theta=12000000.0, whole=WHOLE_HEADS, parameters=RopeParameters(unstated=_SCALING)
            ),
        ),
        decoder_classes("Apertus", without=("ForSequenceClassification", "ForQuestionAnswering")),
        ignored=("hidden_dropout",),  # which only a classifier of tokens reads
    ),
)
