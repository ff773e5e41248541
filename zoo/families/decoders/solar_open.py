"""Solar Open (Upstage, 2025): ``SolarOpenConfig``, ``SolarOpenModel`` and its head: Llama's attention and DeepSeek-V3's mixture in every layer."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.llama_like import WHOLE_HEADS, LlamaFields, layer_modules, llama_tensors
from zoo.families.common.mixtures import (
    CORRECTION,
    EXPERTS,
    TRAINING,
    ExpertGroups,
    shared,
    sigmoid_mixture,
    sigmoid_router,
)

_FIELDS = LlamaFields(
    vocab_size=196608, layers=48, heads=64, kv_heads=8, head_dim=128, context=131072, eps=1e-5
)
_BIAS = f.Bool("attention_bias", default=False)

FAMILIES = (
    Family(
        "solar_open",
        llama_tensors("solar_open", *EXPERTS, CORRECTION, *layer_modules(shared("shared_experts"))),
        _FIELDS.body(
            attention={"bias": {"query": _BIAS, "key": _BIAS, "value": _BIAS, "output": False}},
            position=_FIELDS.rope(whole=WHOLE_HEADS, theta=1e6),
            feed_forward=sigmoid_mixture(
                _FIELDS,
                sigmoid_router(ExpertGroups(1, 1, 2), normalize=True, scale=1.0),
                experts=128,
                top_k=8,
                hidden=1280,
                shared=1,
            ),
        ),
        {"SolarOpenForCausalLM": language_modeling(tied=False, bias=False), "SolarOpenModel": BODY},
        ignored=("intermediate_size", "use_qk_norm", "first_k_dense_replace", *TRAINING),  # of early configs
    ),
)
