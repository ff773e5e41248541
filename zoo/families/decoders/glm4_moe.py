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
from zoo.families.common.rope import RopeField
from zoo.families.common.template import Template


def glm4_moe_fields(vocab_size: int, context: int) -> LlamaFields:
    """The fields of a config with these defaults."""
    return LlamaFields(
        vocab_size=vocab_size,
        intermediate_size=10944,
        layers=46,
        heads=96,
        kv_heads=8,
        context=context,
        eps=1e-5,
    )


def glm4_moe_body(
    fields: LlamaFields, position: RopeField, *, bias: bool, **more: Template
) -> dict[str, Template]:
    """The template of a decoder; ``bias`` is the default of its attention, and ``more`` are further keys of it."""
    biases = f.Bool("attention_bias", default=bias)
    mixture = sigmoid_mixture(
        fields,
        sigmoid_router(ExpertGroups(1, 1, 2), normalize=True, scale=1.0),
        experts=128,
        top_k=8,
        hidden=1408,
        shared=1,
    )
    return fields.body(
        attention={"bias": {"query": biases, "key": biases, "value": biases, "output": False}, **more},
        position=position,
        feed_forward=mixture,
        varies=(FirstLayers(fields.feed_forward(), 1),),
    )


_FIELDS = glm4_moe_fields(151552, 131072)
_SCORES = language_modeling(tied=False, bias=False)
_QK_NORM = f.When(f.Bool("use_qk_norm", default=False), _FIELDS.qk_norm)
_BODY = {
    "*": f.Stated(num_nextn_predict_layers=0),  # the decoder of the module writes another number
    **glm4_moe_body(_FIELDS, _FIELDS.rope(fraction=0.5), bias=False, qk_norm=_QK_NORM),
}
TENSORS = llama_tensors("glm4_moe", *EXPERTS, CORRECTION, *layer_modules(shared("shared_experts")))
FAMILIES = (
    Family(
        "glm4_moe",
        with_next_layer(TENSORS),
        _BODY,
        {
            "Glm4MoeForCausalLM": _SCORES,
            "Glm4MoeModel": BODY,
            "Glm4MoeMTPModel": next_token_class(_BODY, _FIELDS.norm, _SCORES),
        },
        ignored=("num_nextn_predict_layers", "num_mtp_layers", *TRAINING),  # layers beyond the model itself
    ),
)
