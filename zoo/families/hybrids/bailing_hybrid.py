"""Ling 3 (Ling team, 2026): ``BailingHybridConfig``, ``BailingHybridModel`` and its head: Kimi Delta Attention with bounded decays in
most layers, latent attention gated by head in the others, and mixtures of experts."""

from __future__ import annotations

import re
from dataclasses import replace

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.hybrid import MIXERS, LayersOf
from zoo.families.common.layer_lists import FULL, LINEAR, all_but_every, read_kinds
from zoo.families.common.llama_like import BLOCK, LAYER, LlamaFields, layer_modules, layer_weights
from zoo.families.common.mixtures import TRAINING, ExpertGroups, sigmoid_mixture, sigmoid_scores
from zoo.families.common.mlp_kinds import MlpKinds
from zoo.families.common.rope import RopeField
from zoo.families.common.tensors import Rule, Tensors, same
from zoo.families.common.transforms import Depthwise
from zoo.families.decoders.deepseek import LATENT_TENSORS, LatentDims, latent_attention


def _kinds(config: Config, depth: int) -> list[str]:
    """The words for all layers: by default attention in every sixth."""
    linear = all_but_every(f.Positive("layer_group_size", default=6))(config, depth)
    default = [LINEAR if holds else FULL for holds in linear]
    return read_kinds(config, "layer_types", depth, MIXERS) or default


_FIELDS = LlamaFields(
    vocab_size=157184, hidden_size=2560, intermediate_size=6144, layers=42, heads=32, context=262144,
    context_names=("model_max_length", "max_position_embeddings"),
)  # fmt: skip
_DIMS = LatentDims(query_rank=None)
_ROPE = RopeField(
    _DIMS.rotated, _FIELDS.context, theta=6e6, whole="qk_rope_head_dim says what is rotated", layout="interleaved"
)  # fmt: skip
_BOUND = f.Mapped(
    f.Checked(
        f.Float("kda_lower_bound", default=-5.0),
        lambda bound: bound < 0,
        "must be below 0: decays are at most 1",
    ),
    lambda bound: -bound,
    lambda bound: bound and -bound,
)
_DELTA = {
    "kind": "kimi_delta_attention",
    "heads": f.Int("linear_num_heads", default=_FIELDS.heads.heads),
    "head_dim": f.Int(
        "linear_head_dim", default=f.Int("head_dim", default=128), written=("linear_head_dim", "head_dim")
    ),
    "kernel_size": f.Int(
        "linear_conv_kernel_dim",
        default=f.Int("short_conv_kernel_size", default=4),
        written=("linear_conv_kernel_dim", "short_conv_kernel_size"),
    ),
    "activation": f.Activation("hidden_act", "silu"),
    "norm_eps": _FIELDS.eps,
    "low_rank": False,
    "decay_bound": f.When(f.Bool("kda_safe_gate", default=True), _BOUND),
}
_ROUTER = sigmoid_scores(
    f.Float("routed_scaling_factor", default=2.5),
    f.Bool("moe_renormalize", "norm_topk_prob", default=True),
    ExpertGroups(8, 4, 2, "num_expert_group"),
)
_MIXER = {
    "f_proj": "decay_in",
    "g_proj": "gate_in",
    "b_proj": "update",
    "o_norm": "norm",
    **{f"{role}_proj": name for role, name in zip("qkvo", ("query", "key", "value", "output"), strict=True)},
}
_KERNELS = tuple(
    Rule(f"{LAYER}self_attn.{part[0]}_conv1d.weight", (f"{BLOCK}mixer.{part}_kernel",), Depthwise())
    for part in ("query", "key", "value")
)
_KERNEL = Rule(
    f"{LAYER}self_attn.conv1d.weight",
    tuple(f"{BLOCK}mixer.{part}_kernel" for part in ("query", "key", "value")),
    Depthwise(),
)
"""The convolutions as transformers 5 holds them."""
_TOKENS = ("embedding.token.weight",)
"""The table of tokens, which transformers calls by the published name beside a head only."""
_PUBLISHED = (
    (r"self_attn\.o_proj", "attention.dense"),
    (r"self_attn\.", "attention."),
    (r"e_score_correction_bias", "expert_bias"),
)
_IN_MEMORY = ((r"self_attn\.(f_proj|dt_bias|A_log)", r"self_attn.forget_gate.\1"),)


def _renamed(name: str, renamings: tuple[tuple[str, str], ...]) -> str:
    for pattern, other in renamings:
        name = re.sub(pattern, other, name)
    return name


def _tensors(*kernels: Rule) -> Tensors:
    """The tensors by their published names, and by those that transformers 5 gives them."""
    table = replace(LATENT_TENSORS, name="bailing_hybrid", next_token=None)
    rules = (
        Rule("word_embeddings.weight", _TOKENS, where=lambda spec: spec.head.stored_kind != "none"),
        *table.rules,
        *layer_modules({"input_layernorm": "mixer_norm"}),
        *layer_weights({f"self_attn.{stored}": f"mixer.{own}" for stored, own in _MIXER.items()}),
        *layer_weights({"self_attn.g_proj": "attention.gate"}),
        same(f"{LAYER}self_attn.A_log", f"{BLOCK}mixer.rate_log"),
        same(f"{LAYER}self_attn.dt_bias", f"{BLOCK}mixer.step_bias"),
        *kernels,
    )
    return replace(table, rules=tuple(map(_both, rules)))


def _both(rule: Rule) -> Rule:
    """A rule with its published name, and the one in memory."""
    held = "embed_tokens.weight" if rule.parameters == _TOKENS else _renamed(rule.stored, _IN_MEMORY)
    return replace(rule, stored=_renamed(rule.stored, _PUBLISHED), also=(held,))


FAMILIES = (
    Family(
        "bailing_hybrid",
        replace(_tensors(*_KERNELS), other=_tensors(_KERNEL)),
        _FIELDS.body(
            attention={**latent_attention(_FIELDS, _ROPE, _DIMS), "output_gate": {"over": "head"}},
            position=_ROPE,
            feed_forward=sigmoid_mixture(
                _FIELDS,
                _ROUTER,
                experts=512,
                top_k=f.Int("num_experts_per_token", default=8),
                hidden=768,
                shared=1,
                names=("num_experts", "num_shared_experts"),
            ),
            varies=(
                LayersOf(LINEAR, {"attention": None, "mixer": _DELTA}, _kinds),
                MlpKinds(_FIELDS.feed_forward(), 2),
            ),
        ),
        {"BailingHybridForCausalLM": language_modeling(tied=False, bias=False), "BailingHybridModel": BODY},
        fixed={
            "num_key_value_heads": (_FIELDS.heads.heads, "every head has keys and values of its own"),
            "qk_head_dim": (_DIMS.width, "it is qk_nope_head_dim + qk_rope_head_dim"),
        },
        ignored=("head_dim", "kda_lower_bound", "mtp_loss_scaling_factor", "num_nextn_predict_layers", "num_mtp_layers", "pretraining_tp", *TRAINING),
    ),
)  # fmt: skip
