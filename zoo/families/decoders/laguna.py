"""Laguna (poolside, 2026): ``LagunaConfig``, ``LagunaModel`` and its head: attention gated by the softplus, heads by kind of layer, and a
mixture with a shared expert."""

from __future__ import annotations

from typing import Any

from specs.kinds.attention import MultiHeadShape
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.held import also_named
from zoo.families.common.layer_lists import no_layer, read_layer_types
from zoo.families.common.llama_like import (
    BLOCK,
    LAYER,
    LlamaFields,
    layer_modules,
    layer_weights,
    llama_tensors,
)
from zoo.families.common.mixtures import EXPERTS, TRAINING, shared, sigmoid_scores
from zoo.families.common.mlp_kinds import MlpKinds
from zoo.families.common.qwen import qwen_mixture
from zoo.families.common.rope import RopeParameters
from zoo.families.common.rope_by_window import RopeByWindow
from zoo.families.common.template import Data, FieldContext, UnfitError
from zoo.families.common.tensors import same
from zoo.families.common.windowed_layers import Windows

_FIELDS = LlamaFields(
    vocab_size=100352, hidden_size=2048, intermediate_size=8192, layers=40, heads=48, kv_heads=8, head_dim=128,
    context=131072,
)  # fmt: skip
_LISTED = "num_attention_heads_per_layer"


class _Heads(f.Int):
    """The number of heads of the layers with a window, or of the others; it is equal in all layers of a kind."""

    def __init__(self, *, windowed: bool) -> None:
        super().__init__("num_attention_heads", default=48)
        self.windowed = windowed

    def read(self, config: Config) -> int:
        count: int = super().read(config)
        depth = _FIELDS.depth.read(config)
        listed = config.list(_LISTED, default=[count] * depth)
        if len(listed) != depth or not all(type(heads) is int for heads in listed):
            config.refuse(_LISTED, f"must be a number for each of the {depth} layers")
        windows = read_layer_types(config, [False] * depth)
        own = {heads for heads, windowed in zip(listed, windows, strict=True) if windowed is self.windowed}
        if len(own) > 1:
            config.refuse(_LISTED, "must be equal in all layers of a kind")
        return own.pop() if own else count

    def write(self, value: int, context: FieldContext) -> Data:
        attentions = [block.attention for block in context.stack.layer_blocks()]
        listed = [attention.heads for attention in attentions if isinstance(attention, MultiHeadShape)]
        if len(listed) < len(attentions):
            raise UnfitError("layers without attention")
        return {**super().write(value, context), _LISTED: listed}


_GATE = f.Choice(
    "gating", {True: "head", "per-element": "channel", "per-head": "head", False: "channel"}, True
)
"""The granularity of the output gates, as a word or as a boolean."""

_POSITIONS = RopeByWindow(
    _FIELDS.heads.width,
    _FIELDS.context,
    parameters=RopeParameters(unstated={"rope_theta": 500000.0, "partial_rotary_factor": 0.5}),
)
_LOCAL: dict[str, Any] = {"heads": _Heads(windowed=True), "position": f.Derived(_POSITIONS.read_local)}
_BIAS = f.Bias("attention_bias", default=False)
_MIXTURE = qwen_mixture(
    _FIELDS,
    256,
    8,
    512,
    shared=_FIELDS.feed_forward(hidden=f.Int("shared_expert_intermediate_size", default=512)),
    router=sigmoid_scores(f.Float("moe_routed_scaling_factor", default=1.0)),
)

FAMILIES = (
    Family(
        "laguna",
        llama_tensors(
            "laguna",
            *layer_weights({"self_attn.g_proj": "attention.gate"}),
            *EXPERTS,
            *also_named(layer_modules(shared("shared_expert")), ("shared_expert", "shared_experts")),
            same(
                f"{LAYER}mlp.experts.e_score_correction_bias",
                f"{BLOCK}feed_forward.router.score_correction_bias",
                also=(f"{LAYER}mlp.gate.e_score_correction_bias",),
            ),
        ),
        _FIELDS.body(
            attention={
                "kind": "grouped_query",
                "heads": _Heads(windowed=False),
                "kv_heads": f.Int("num_key_value_heads", default=8),
                "head_dim": _FIELDS.heads.width,
                "bias": _BIAS,
                "qk_norm": _FIELDS.qk_norm,
                "output_gate": {"over": _GATE, "activation": "softplus"},
                "dropout": f.Float("attention_dropout", default=0.0),
            },
            position=_POSITIONS,
            feed_forward=_MIXTURE,
            varies=(
                Windows("local", f.Int("sliding_window", default=512), no_layer, **_LOCAL),
                MlpKinds(_FIELDS.feed_forward(), 1),
            ),
        ),
        {"LagunaForCausalLM": language_modeling(tied=False, bias=False), "LagunaModel": BODY},
        fixed={
            "partial_rotary_factor": (1.0, "the reference reads it in rope_parameters"),
            "moe_apply_router_weight_on_input": (False, "the reference has no other"),
            "moe_router_logit_softcapping": (0.0, "specs have no bound on the scores of experts"),
        },
        ignored=TRAINING,
    ),
)  # fmt: skip
