"""Kimi Linear (Kimi team, 2025): ``KimiLinearConfig``, ``KimiLinearModel`` and its head: Kimi Delta Attention in most layers, latent
attention without positions in the others, and mixtures of experts."""

from __future__ import annotations

from dataclasses import replace

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.held import also_named
from zoo.families.common.hybrid import MIXERS, LayersOf
from zoo.families.common.layer_lists import FULL, LINEAR, read_kinds
from zoo.families.common.llama_like import (
    BLOCK,
    LAYER,
    LlamaFields,
    layer_modules,
    layer_weights,
    llama_tensors,
)
from zoo.families.common.mixtures import (
    MIXTRAL_EXPERTS,
    MIXTRAL_MODULE,
    TRAINING,
    ExpertGroups,
    Shared,
    sigmoid_scores,
)
from zoo.families.common.mlp_kinds import MlpKinds
from zoo.families.common.template import Field, Template
from zoo.families.common.tensors import Rule, projections, same
from zoo.families.common.transforms import Depthwise, PerHead


def _kinds(config: Config, depth: int) -> list[str]:
    """The words for all layers: listed, or numbered from 1 in linear_attn_config, or by default attention in every fourth."""
    listed = read_kinds(config, "layer_types", depth, MIXERS)
    if listed is not None:
        return listed
    linear_config = config.part("linear_attn_config")
    attending = None if linear_config is None else linear_config.list("full_attn_layers")
    if attending is None:
        return [FULL if layer and layer % 4 == 0 else LINEAR for layer in range(depth)]
    return [FULL if layer + 1 in attending else LINEAR for layer in range(depth)]


def _of_delta(name: str, inner: str, default: int) -> Field:
    """A size of Kimi Delta Attention: a field, or one of linear_attn_config, which comes first."""

    def size(own: int, config: Config) -> int:
        linear_config = config.part("linear_attn_config")
        return own if linear_config is None else int(linear_config.int(inner, default=own))

    return f.Computed(f.Int(name, default=default), size)


_FIELDS = LlamaFields(
    vocab_size=163840, hidden_size=2304, intermediate_size=9216, layers=27, heads=32, context=1048576, eps=1e-5,
    context_names=("model_max_length", "max_position_embeddings"),
)  # fmt: skip
_ROTATED = f.Int("qk_rope_head_dim", default=64)
_HEADS = f.Int("num_attention_heads", default=32, written=("num_attention_heads", "num_key_value_heads"))
_ATTENTION = {
    "kind": "latent",
    "heads": _HEADS,
    "query_rank": f.Int("q_lora_rank", null=True),
    "kv_rank": f.Int("kv_lora_rank", default=512),
    "head_dim": f.Int("qk_nope_head_dim", default=128),
    "rope_dim": _ROTATED,
    "value_dim": f.Int("v_head_dim", default=128),
    "bias": f.Bool("attention_bias", default=False),
    "dropout": f.Float("attention_dropout", default=0.0),
}
_DELTA: Template = {
    "kind": "kimi_delta_attention",
    "heads": _of_delta("linear_num_heads", "num_heads", 32),
    "head_dim": _of_delta("linear_head_dim", "head_dim", 128),
    "kernel_size": _of_delta("linear_conv_kernel_dim", "short_conv_kernel_size", 4),
    "activation": f.Activation("hidden_act", "silu"),
    "norm_eps": _FIELDS.eps,
}
_EXPERT_WIDTH = f.Int("moe_intermediate_size", default=1024)
_MIXTURE = {
    "kind": "mixture",
    "experts": f.Int("num_experts", "num_local_experts", default=256),
    "top_k": f.Int("num_experts_per_token", "num_experts_per_tok", default=8),
    "expert": _FIELDS.feed_forward(hidden=_EXPERT_WIDTH),
    "shared": Shared(_FIELDS.feed_forward(), _EXPERT_WIDTH, "num_shared_experts", default=1),
    "router": sigmoid_scores(
        f.Float("routed_scaling_factor", default=2.446),
        f.Bool("moe_renormalize", "norm_topk_prob", default=True),
        ExpertGroups(1, 1, 2, "num_expert_group"),
    ),
}
_STORED, _OURS = f"{LAYER}self_attn.", f"{BLOCK}mixer."
_TENSORS = llama_tensors(
    "kimi_linear",
    *layer_modules(
        {
            "input_layernorm": "mixer_norm",
            **projections("self_attn.", "q_proj k_proj v_proj o_proj", "mixer"),
            "self_attn.kv_a_proj_with_mqa": "attention.key_value_down",
            "self_attn.q_a_proj": "attention.query_down",
            **{
                f"block_sparse_moe.shared_experts.{part}_proj": f"feed_forward.shared.{part}"
                for part in ("gate", "up", "down")
            },
        }
    ),
    *layer_weights(
        {
            "self_attn.q_a_layernorm": "attention.query_norm",
            "self_attn.q_b_proj": "attention.query_up",
            "self_attn.kv_a_layernorm": "attention.key_value_norm",
            "self_attn.kv_b_proj": "attention.key_value_up",
            "self_attn.f_a_proj": "mixer.decay_in",
            "self_attn.f_b_proj": "mixer.decay_out",
            "self_attn.g_a_proj": "mixer.gate_in",
            "self_attn.g_b_proj": "mixer.gate_out",
            "self_attn.b_proj": "mixer.update",
            "self_attn.o_norm": "mixer.norm",
        }
    ),
    *(
        Rule(f"{_STORED}{part[0]}_conv1d.weight", (f"{_OURS}{part}_kernel",), Depthwise())
        for part in ("query", "key", "value")
    ),
    Rule(f"{_STORED}A_log", (f"{_OURS}rate_log",), PerHead()),
    same(f"{_STORED}dt_bias", f"{_OURS}step_bias"),
    *MIXTRAL_EXPERTS,
    same(
        f"{LAYER}block_sparse_moe.gate.e_score_correction_bias",
        f"{BLOCK}feed_forward.router.score_correction_bias",
    ),
    *(
        same(
            f"{LAYER}mlp.{part}_proj.weight",
            f"{BLOCK}feed_forward.{part}.weight",
            also=(f"{LAYER}block_sparse_moe.{part}_proj.weight",),  # as transformers writes it
        )
        for part in ("gate", "up", "down")
    ),
    without=("q_norm", "k_norm", "mlp."),
)
_IN_MEMORY = replace(
    _TENSORS,
    rules=(
        *also_named(
            [rule for rule in _TENSORS.rules if "_conv1d." not in rule.stored],
            MIXTRAL_MODULE,
            (r"self_attn\.(f_a_proj|f_b_proj|dt_bias|A_log)", r"self_attn.forget_gate.\1"),
        ),
        Rule(
            f"{_STORED}conv1d.weight",
            tuple(f"{_OURS}{part}_kernel" for part in ("query", "key", "value")),
            Depthwise(),
        ),
    ),
)
"""The tensors as transformers 5 holds them: one convolution for queries, keys and values."""

FAMILIES = (
    Family(
        "kimi_linear",
        replace(_TENSORS, other=_IN_MEMORY),
        _FIELDS.body(
            attention=_ATTENTION,
            position={"kind": "none"},
            feed_forward=_MIXTURE,
            varies=(
                LayersOf(LINEAR, {"attention": None, "mixer": _DELTA}, _kinds),
                MlpKinds(_FIELDS.feed_forward(), 1),
            ),
        ),
        {"KimiLinearForCausalLM": language_modeling(tied=False, bias=False), "KimiLinearModel": BODY},
        fixed={
            "num_key_value_heads": (_HEADS, "every head has keys and values of its own"),
            "moe_router_activation_func": ("sigmoid", "the reference has no other"),
            "mla_use_nope": (True, "the reference rotates nothing"),
            "moe_layer_freq": (1, "layers after the first few have a mixture"),
        },
        ignored=(
            "head_dim",
            "num_nextn_predict_layers",
            "pretraining_tp",
            "qk_head_dim",
            "rope_scaling",
            "rope_theta",
            "use_grouped_topk",
            *TRAINING,
        ),
    ),
)
