"""Trinity (Arcee AI, 2025): ``AfmoeConfig``, ``AfmoeModel`` and its head: gated attention between two norms, and DeepSeek-V3's mixture."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.layer_lists import all_but_every
from zoo.families.common.llama_like import (
    BLOCK,
    LAYER,
    WHOLE_HEADS,
    LlamaFields,
    layer_modules,
    layer_weights,
    llama_tensors,
)
from zoo.families.common.mixtures import (
    TRAINING,
    FirstLayers,
    experts,
    shared,
    sigmoid_mixture,
    sigmoid_scores,
)
from zoo.families.common.tensors import same
from zoo.families.common.unrotated_layers import GlobalLayers
from zoo.families.common.windowed_layers import Windows

_FIELDS = LlamaFields(
    vocab_size=200192,
    hidden_size=2048,
    intermediate_size=6144,
    heads=16,
    head_dim=128,
    context=16384,
    eps=1e-5,
)


_WINDOWS = Windows(
    "local",
    f.Int("sliding_window", default=1024, null=True),
    all_but_every(f.Positive("global_attn_every_n_layers", default=4)),
)
_MIXTURE = sigmoid_mixture(
    _FIELDS,
    sigmoid_scores(f.Float("route_scale", default=1.0)),
    experts=64,
    top_k=6,
    hidden=1408,
    shared=2,
    names=("num_experts", "num_shared_experts"),
)
_NORMS = {
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "attention_output_norm",
    "pre_mlp_layernorm": "feed_forward_norm",
    "post_mlp_layernorm": "feed_forward_output_norm",
    "self_attn.gate_proj": "attention.gate",
}

FAMILIES = (
    Family(
        "afmoe",
        llama_tensors(
            "afmoe",
            *layer_weights(_NORMS),
            *experts("mlp", "gate_proj", "up_proj", "down_proj", router="router.gate"),
            same(f"{LAYER}mlp.expert_bias", f"{BLOCK}feed_forward.router.score_correction_bias"),
            *layer_modules(shared("shared_experts")),
            without=("layernorm",),
        ),
        _FIELDS.body(
            kind="sandwich",
            attention={"bias": False, "output_gate": True, "qk_norm": _FIELDS.qk_norm},
            position=_FIELDS.rope(whole=WHOLE_HEADS),
            feed_forward=_MIXTURE,
            more={"embedding": {"scale": f.When(f.Bool("mup_enabled", default=False), "sqrt_d_model")}},
            varies=(
                _WINDOWS,
                GlobalLayers(_WINDOWS),
                FirstLayers(_FIELDS.feed_forward(), 1, "num_dense_layers"),
            ),
        ),
        {"AfmoeForCausalLM": language_modeling(tied=False, bias=False), "AfmoeModel": BODY},
        fixed={
            "attention_bias": (False, "the gate of the output has none"),
            "score_func": ("sigmoid", "the reference has no other scores"),
            "route_norm": (True, "the weights of experts are divided by their sum"),
            "n_group": (1, "experts are not grouped"),
            "topk_group": (1, "experts are not grouped"),
        },
        ignored=(
            "load_balance_coeff",
            "use_grouped_mm",
            "num_expert_groups",
            "num_limited_groups",
            *TRAINING,
        ),
    ),
)
