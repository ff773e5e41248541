"""Sarvam 30B and 105B (Sarvam AI, 2026): ``SarvamMoEConfig`` with the code of GLM-4.5, and ``SarvamMLAConfig`` with DeepSeek-V3's."""

from __future__ import annotations

import re
from dataclasses import replace

from zoo.families.common import fields as f
from zoo.families.common.decoders import query_key_value
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, decoder_classes, language_modeling
from zoo.families.common.llama_like import BLOCK, LAYER, LlamaFields, layer_modules, llama_tensors
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
from zoo.families.common.rope import RopeField, RopeParameters
from zoo.families.common.template import Template
from zoo.families.common.tensors import Rule, fused
from zoo.families.decoders.deepseek import LATENT_TENSORS, LatentDims, latent_body, latent_fixed

_YARN = RopeParameters(
    {name: name for name in ("linear", "dynamic", "llama3", "yarn", "longrope")} | {"deepseek_yarn": "yarn"}
)


def _mixture(fields: LlamaFields, *, top_k: int, hidden: int) -> Template:
    """DeepSeek-V3's mixture; published configs have other names for the numbers of experts."""
    return sigmoid_mixture(
        fields,
        sigmoid_router(ExpertGroups(1, 1, 2), normalize=True, scale=2.5),
        experts=f.Int("num_experts", default=128),
        top_k=top_k,
        hidden=hidden,
        shared=f.Int("num_shared_experts", default=1),
    )


_FIELDS = LlamaFields(
    vocab_size=262144, hidden_size=4096, intermediate_size=8192, layers=19, heads=64, kv_heads=4, head_dim=64,
    context=131072,
)  # fmt: skip
_BIAS = f.Bool("attention_bias", "use_qkv_bias", default=False)
_ATTENTION = {
    "bias": {"query": _BIAS, "key": _BIAS, "value": _BIAS, "output": False},
    "qk_norm": f.When(f.Bool("use_qk_norm", default=True), _FIELDS.qk_norm),
}
_PUBLISHED = (
    (r"^embed_tokens", "word_embeddings"),
    (r"self_attn\.o_proj", "attention.dense"),
    (r"self_attn\.q_norm", "attention.query_layernorm"),
    (r"self_attn\.k_norm", "attention.key_layernorm"),
    (r"gate\.e_score_correction_bias", "gate.expert_bias"),
)
_HELD = llama_tensors("sarvam_moe", *EXPERTS, CORRECTION, *layer_modules(shared("shared_experts")))


def _published(rule: Rule) -> Rule:
    """A rule with the name in published checkpoints, and the one in memory."""
    name = rule.stored
    for pattern, other in _PUBLISHED:
        name = re.sub(pattern, other, name)
    return replace(rule, stored=name, also=() if name == rule.stored else (rule.stored,))


_TENSORS = replace(
    _HELD,
    rules=(
        *(_published(rule) for rule in _HELD.rules if not re.search(r"[qkv]_proj", rule.stored)),
        *fused(f"{LAYER}attention.query_key_value", query_key_value(BLOCK.removesuffix("."))),
    ),
    other=replace(_HELD, rules=tuple(map(_published, _HELD.rules))),
)
_SCORES = language_modeling(tied=False, bias=False)

_LATENT = LlamaFields(vocab_size=262144, hidden_size=4096, intermediate_size=16384, heads=64, context=4096)
_DIMS = LatentDims(query_rank=None)

FAMILIES = (
    Family(
        "sarvam_moe",
        _TENSORS,
        _FIELDS.body(
            attention=_ATTENTION,
            position=_FIELDS.rope(theta=8e6, whole=""),
            feed_forward=_mixture(_FIELDS, top_k=6, hidden=1024),
            varies=(FirstLayers(_FIELDS.feed_forward(), 1),),
        ),
        dict.fromkeys(("SarvamMoEForCausalLM", "Glm4MoeForCausalLM"), _SCORES) | {"Glm4MoeModel": BODY},
        ignored=("num_nextn_predict_layers", "num_mtp_layers", *TRAINING),
    ),
    Family(
        "sarvam_mla",
        LATENT_TENSORS,
        latent_body(
            _LATENT,
            dims=_DIMS,
            rope=RopeField(
                _DIMS.rotated,
                _LATENT.context,
                whole="qk_rope_head_dim says what is rotated",
                parameters=_YARN,
                layout=f.Choice("rope_interleave", {True: "interleaved", False: "half_split"}, True),
            ),
            feed_forward=_mixture(_LATENT, top_k=8, hidden=2048),
            dense=FirstLayers(_LATENT.feed_forward(), 1),
            constants=f.Stated(),
        ),
        {"SarvamMLAForCausalLM": _SCORES} | decoder_classes("DeepseekV3", without=("ForQuestionAnswering",)),
        fixed={name: fixed for name, fixed in latent_fixed(_LATENT, "sigmoid", _DIMS).items() if name != "head_dim"}
        | {"q_head_dim": (_DIMS.width, "it is qk_nope_head_dim + qk_rope_head_dim")},
        ignored=("head_dim", "num_nextn_predict_layers", "num_mtp_layers", *TRAINING),  # the first is vLLM's
    ),
)  # fmt: skip
