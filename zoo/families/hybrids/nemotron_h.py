"""Nemotron-H (NVIDIA, 2025): ``NemotronHConfig``, ``NemotronHModel`` and its head.

Each layer has one branch: Mamba-2, attention, a feed-forward or a mixture.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.model.stack import MAX_LAYERS
from zoo.families.common import fields as f
from zoo.families.common.attention import Heads
from zoo.families.common.config import Config
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY
from zoo.families.common.hybrid import LayersOf
from zoo.families.common.layer_lists import FULL, LINEAR, read_kinds
from zoo.families.common.layers import Layers
from zoo.families.common.mamba import TIME_STEPS, backbone_tensors, mamba2, mamba2_rules
from zoo.families.common.mixtures import TRAINING, ExpertGroups, sigmoid_router
from zoo.families.common.template import Data, Template
from zoo.families.common.tensors import projections, same, weights

_LETTERS = {"M": LINEAR, "*": FULL, "E": "moe", "-": "mlp"}
_KINDS = tuple(_LETTERS.values())
_USUAL = [LINEAR, "moe", FULL, "mlp"]


def _kinds(config: Config, depth: int | None = None) -> list[str]:
    """The kind of every layer, which a list or a text of letters states."""
    text = config.text("hybrid_override_pattern")
    name = next((field for field in ("layers_block_type", "layer_types") if config.has(field)), None)
    if name is not None:
        entries = config.list(name)
        return read_kinds(config, name, len(entries), _KINDS) or []
    if text is None:
        return _USUAL
    if unknown := set(text) - _LETTERS.keys():
        config.refuse("hybrid_override_pattern", f"must consist of {' '.join(_LETTERS)}, not {min(unknown)}")
    return [_LETTERS[letter] for letter in text]


def _depth(config: Config) -> int:
    """The number of layers: the length of the list of their kinds."""
    config.layers("num_hidden_layers")  # which the reference does not read
    depth = len(_kinds(config))
    if depth > MAX_LAYERS:
        config.refuse("layers_block_type", f"must have at most {MAX_LAYERS:,} layers")
    return depth


def _stated(kinds: Sequence[str]) -> Data:
    return {"layers_block_type": [*kinds]}


_D_MODEL, _EPS = f.Int("hidden_size", default=4096), f.Float("layer_norm_epsilon", default=1e-5)
_HEADS = Heads(_D_MODEL, f.Int("num_attention_heads", default=32), kv_heads=8, head_dim=128)
_HEADS.width = f.Int("head_dim", "attention_head_dim", default=128)
_ATTENTION = {
    "*": _HEADS,
    "bias": False,
    "dropout": f.Float("attention_dropout", default=0.0),
}


def _mlp(hidden: f.Int, bias: Template) -> Template:
    activation = f.Activation("mlp_hidden_act", "relu2")
    return {"kind": "mlp", "hidden": hidden, "activation": activation, "bias": bias}


_BIAS = f.Bool("mlp_bias", default=False)
_MIXTURE = {
    "kind": "mixture",
    "experts": f.Int("n_routed_experts", "num_local_experts", default=8),
    "top_k": f.Int("num_experts_per_tok", default=2),
    "expert": _mlp(f.Int("moe_intermediate_size", default=7688), bias=False),
    "shared": _mlp(f.Int("moe_shared_expert_intermediate_size", default=7688), _BIAS),
    "router": sigmoid_router(ExpertGroups(1, 1, 2), normalize=True, scale=1.0),
}
_MIXER = mamba2(
    heads=f.Int("mamba_num_heads", default=128),
    head_dim=f.Int("mamba_head_dim", default=64),
    expand=None,
    d_model=_D_MODEL,
    state_size=f.Int("ssm_state_size", default=128),
    groups=f.Int("n_groups", "mamba_n_groups", default=8),
    kernel_size=f.Int("conv_kernel", "mamba_d_conv", default=4),
    activation=f.Activation("mamba_hidden_act", "silu"),
    bias=f.Bool("use_bias", default=False),
    convolution_bias=f.Bool("use_conv_bias", "mamba_conv_bias", default=True),
    eps=_EPS,
)

_STORED, _OURS = "layers.{layer}.mixer.", "decoder.blocks.{layer}."
_EXPERT, _FEED_FORWARD = f"{_STORED}experts.{{expert}}", f"{_OURS}feed_forward."

FAMILIES = (
    Family(
        "nemotron_h",
        backbone_tensors(
            "nemotron_h",
            same("layers.{layer}.norm.weight", f"{_OURS}attention_norm.weight"),
            same("layers.{layer}.norm.weight", f"{_OURS}feed_forward_norm.weight"),
            *mamba2_rules(),
            *weights(projections("", "q_proj k_proj v_proj o_proj"), _STORED, _OURS),
            *(
                rule
                for part in ("up", "down")
                for leaf in ("weight", "bias")
                for rule in (
                    same(f"{_STORED}{part}_proj.{leaf}", f"{_FEED_FORWARD}{part}.{leaf}"),
                    same(
                        f"{_STORED}shared_experts.{part}_proj.{leaf}", f"{_FEED_FORWARD}shared.{part}.{leaf}"
                    ),
                )
            ),
            same(f"{_STORED}gate.weight", f"{_FEED_FORWARD}router.weight"),
            same(f"{_STORED}gate.e_score_correction_bias", f"{_FEED_FORWARD}router.score_correction_bias"),
            same(f"{_EXPERT}.up_proj.weight", f"{_FEED_FORWARD}experts.up.weight"),
            same(f"{_EXPERT}.down_proj.weight", f"{_FEED_FORWARD}experts.down.weight"),
            held="model.",
        ),
        {
            "architecture": "decoder",
            "vocab_size": f.Int("vocab_size", default=131072),
            "d_model": _D_MODEL,
            "context_length": f.ContextLength("max_position_embeddings", default=4096),
            "decoder": Layers(
                f.Derived(_depth),
                {
                    "kind": "pre_norm",
                    "norm": {"kind": "rms_norm", "eps": _EPS},
                    "attention": None,
                    "mixer": _MIXER,
                    "feed_forward": None,
                },
                tuple(
                    LayersOf(kind, {"mixer": None, **differs}, _kinds, _stated)
                    for kind, differs in (
                        (FULL, {"attention": _ATTENTION}),
                        ("mlp", {"feed_forward": _mlp(f.Int("intermediate_size", default=21504), _BIAS)}),
                        ("moe", {"feed_forward": _MIXTURE}),
                    )
                ),
            ),
            "initialization": f.normal(),
        },
        {
            "NemotronHForCausalLM": HeadClass("language_modeling", {"tie_embeddings": False, "bias": False}),
            "NemotronHModel": BODY,
        },
        fixed={
            "moe_latent_size": (None, "experts that read a narrower projection are not supported"),
            "sliding_window": (None, "the reference does not read this field"),
        },
        ignored=(
            "attention_bias",  # the reference has no biases there
            "chunk_size",
            "expand",  # the reference reads the heads alone
            "hidden_dropout",
            "mamba_chunk_size",
            "mamba_expand",
            "mamba_proj_bias",
            "mamba_ssm_cache_dtype",
            "moe_shared_expert_overlap",
            "mtp_hybrid_override_pattern",
            "mtp_layers_block_type",
            "n_shared_experts",  # the reference reads their width alone
            "num_logits_to_keep",
            "num_nextn_predict_layers",
            "partial_rotary_factor",  # which, like the base, states positions that the reference does not have
            "rope_theta",
            "residual_in_fp32",
            "rms_norm_eps",  # the reference reads layer_norm_epsilon
            "use_mamba_kernels",
            *TIME_STEPS,
            *TRAINING,
        ),
    ),
)
