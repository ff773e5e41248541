"""Hy3 (Tencent, 2026): ``HYV3Config``, ``HYV3Model`` and its head: Llama with norms of each head, and DeepSeek-V3's mixture."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.held import also_named
from zoo.families.common.llama_like import (
    BLOCK,
    LAYER,
    WHOLE_HEADS,
    LlamaFields,
    layer_modules,
    llama_tensors,
)
from zoo.families.common.mixtures import TRAINING, experts, shared, sigmoid_mixture, sigmoid_scores
from zoo.families.common.mlp_kinds import MlpKinds
from zoo.families.common.tensors import same

_FIELDS = LlamaFields(
    vocab_size=120832,
    intermediate_size=13312,
    layers=80,
    heads=64,
    kv_heads=8,
    head_dim=128,
    context=131072,
    eps=1e-5,
)
_DENSE = _FIELDS.feed_forward()
_MIXTURE = sigmoid_mixture(
    _FIELDS,
    sigmoid_scores(f.Float("router_scaling_factor", default=2.826)),
    experts=192,
    top_k=8,
    hidden=1536,
    shared=1,
    names=("num_experts", "num_shared_experts"),
)
_RULES = also_named(
    (
        *experts("mlp", "gate_proj", "up_proj", "down_proj", router="router.gate"),
        same(f"{LAYER}mlp.expert_bias", f"{BLOCK}feed_forward.router.score_correction_bias"),
        *layer_modules(shared("shared_mlp")),
    ),
    (r"router\.gate", "gate"),
    ("expert_bias", "e_score_correction_bias"),
    ("shared_mlp", "shared_experts"),
)

FAMILIES = (
    Family(
        "hy_v3",
        llama_tensors("hy_v3", *_RULES, unused_layers="layers.*.eh_proj.weight"),
        _FIELDS.body(
            attention={"bias": f.Bias("attention_bias", default=False), "qk_norm": _FIELDS.qk_norm},
            position=_FIELDS.rope(whole=WHOLE_HEADS, theta=11158840.0),
            feed_forward=_MIXTURE,
            varies=(MlpKinds(_DENSE, 1),),
        ),
        {"HYV3ForCausalLM": language_modeling(tied=False, bias=False), "HYV3Model": BODY},
        fixed={"mlp_bias": (False, "the checkpoints have no such biases")},
        ignored=("enable_moe_fp32_combine", *TRAINING),
    ),
)
