"""GLM-4.5 (GLM-4.5 team, 2025): ``Glm4MoeConfig``, ``Glm4MoeModel`` and its head: DeepSeek-V3's mixture with grouped heads."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.llama_like import LlamaFields, layer_modules, llama_tensors
from zoo.families.common.mixtures import (
    CORRECTION,
    EXPERTS,
    TRAINING,
    ExpertGroups,
    FirstLayers,
    shared,
    sigmoid_mixture,
    sigmoid_router,
)
from zoo.families.common.next_token import next_token_class, with_next_layer

_FIELDS = LlamaFields(
    vocab_size=151552, intermediate_size=10944, layers=46, heads=96, kv_heads=8, context=131072, eps=1e-5
)
_BIAS = f.Bool("attention_bias", default=False)
_QK_NORM = {"norm": _FIELDS.norm, "over": "head"}
_MIXTURE = sigmoid_mixture(
    _FIELDS,
    sigmoid_router(ExpertGroups(1, 1, 2), normalize=True, scale=1.0),
    experts=128,
    top_k=8,
    hidden=1408,
    shared=1,
)

_SCORES = language_modeling(tied=False, bias=False)
_BODY = _FIELDS.body(
    attention={
        "bias": {"query": _BIAS, "key": _BIAS, "value": _BIAS, "output": False},
        "qk_norm": f.When(f.Bool("use_qk_norm", default=False), _QK_NORM),
    },
    position=_FIELDS.rope(fraction=0.5),
    feed_forward=_MIXTURE,
    varies=(FirstLayers(_FIELDS.feed_forward(), 1),),
    more={"*": f.Stated(num_nextn_predict_layers=0)},
)

FAMILIES = (
    Family(
        "glm4_moe",
        with_next_layer(
            llama_tensors("glm4_moe", *EXPERTS, CORRECTION, *layer_modules(shared("shared_experts")))
        ),
        _BODY,
        {
            "Glm4MoeForCausalLM": _SCORES,
            "Glm4MoeModel": BODY,
            "Glm4MoeMTPModel": next_token_class(_BODY, _FIELDS.norm, _SCORES),
        },
        ignored=("num_nextn_predict_layers", "num_mtp_layers", *TRAINING),  # layers beyond the model itself
    ),
)
