"""Granite 3 (IBM, 2024) and 4 (2025): ``GraniteConfig``, ``GraniteMoeConfig``, ``GraniteMoeSharedConfig``,
``GraniteMoeHybridConfig`` and their models.

They are Llama, its mixture, without or with a shared feed-forward, and a hybrid with Mamba-2, all with scalar multipliers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specs.base.base import Component
from specs.kinds.mixture import Mixture
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.held import also_named
from zoo.families.common.hybrid import MIXERS, LayersOf
from zoo.families.common.layer_lists import FULL, LINEAR, read_kinds
from zoo.families.common.llama_like import BLOCK, LAYER, LLAMA, WHOLE_HEADS, LlamaFields, llama_tensors
from zoo.families.common.mamba import NO_MIXERS, mamba2_rules, prefixed_mamba2
from zoo.families.common.mixtures import TRAINING, mixture
from zoo.families.common.rope import OF_ROPE
from zoo.families.common.template import Data, Field, FieldContext, Template, UnfitError, read, write
from zoo.families.common.tensors import Rule, same
from zoo.families.common.transforms import STACKED, Stacked


def score_scale(default: float | None = None) -> Field:
    """The factor on attention scores, which a spec may leave to the width of a head."""
    return f.Computed(
        f.Float("attention_multiplier", default=default),
        lambda scale, config: scale,
        lambda scale, context: context.head_width() ** -0.5 if scale is None else scale,
    )


_FIELDS = LlamaFields()
LOGITS = f.Mapped(
    f.Checked(f.Factor("logits_scaling"), lambda divisor: divisor != 0, "must not be 0"),
    lambda divisor: None if divisor is None else 1.0 / divisor,
    lambda factor: None if factor is None else float(f"{1.0 / factor:.15g}"),
)
GRANITE_HEAD = language_modeling(tied=False, bias=False, scale=LOGITS)


GRANITE_ATTENTION = {
    "bias": f.Bias("attention_bias", default=False),
    "scale": score_scale(1.0),
}
MULTIPLIED: dict[str, Any] = {
    "residual": {"kind": "add", "scale": f.Float("residual_multiplier", default=1.0)},
    "more": {"embedding": {"scale": f.Factor("embedding_multiplier")}},
}


def _body(feed_forward: Template) -> Template:
    """Llama's body with a factor on embeddings, on scores and on branches."""
    return _FIELDS.body(attention=GRANITE_ATTENTION, feed_forward=feed_forward, **MULTIPLIED)


class _HybridFeedForward(Field):
    """A mixture with a shared feed-forward, or that one alone where there are no experts."""

    component = Component

    shared = _FIELDS.feed_forward(hidden=f.Int("shared_intermediate_size", default=1024))
    count = f.Int("num_local_experts", default=8)

    def read(self, config: Config) -> Data:
        if self.count.read(config):
            return {**read(GRANITE_MIXTURE, config), "shared": read(self.shared, config)}
        config.ignore("num_experts_per_tok", "intermediate_size")
        shared: Data = read(self.shared, config)
        return shared

    def write(self, value: Any, context: FieldContext) -> Data:
        if not isinstance(value, Mixture):
            return {"num_local_experts": 0, **write(self.shared, value, context)}
        if value.shared is None:
            raise UnfitError("a mixture without a shared feed-forward")
        return {**write(GRANITE_MIXTURE, value, context), **write(self.shared, value.shared, context)}


_HYBRID_POSITION = f.Kinds(
    f.Choice("position_embedding_type", {None: False, "nope": False, "rope": True}, None),
    {False: {"kind": "none"}, True: _FIELDS.rope(whole=WHOLE_HEADS)},
)


def _kinds(config: Config, depth: int) -> list[str]:
    """The layers of a hybrid, by default all with Mamba."""
    name = "layer_types" if config.has("layer_types") else "layers_block_type"
    config.ignore("layer_types", "layers_block_type")
    return read_kinds(config, name, depth, MIXERS) or [LINEAR] * depth


def _stated(kinds: Sequence[str]) -> Data:
    return {"layer_types": [*kinds], **({} if LINEAR in kinds else NO_MIXERS)}


_EXPERTS, FEED_FORWARD = f"{LAYER}block_sparse_moe", f"{BLOCK}feed_forward"
GRANITE_MIXTURE = mixture(f.Int("num_local_experts", default=8), 2, _FIELDS.feed_forward())

MIXTURE_RULES = also_named(
    (
        same(f"{_EXPERTS}.router.layer.weight", f"{FEED_FORWARD}.router.weight"),
        Rule(
            f"{_EXPERTS}.input_linear.weight",
            (f"{FEED_FORWARD}.experts.gate.weight", f"{FEED_FORWARD}.experts.up.weight"),
            Stacked(1),
        ),
        same(f"{_EXPERTS}.output_linear.weight", f"{FEED_FORWARD}.experts.down.weight"),
    ),
    (r"router\.layer", "router"),
    (r"input_linear\.weight", "experts.gate_up_proj"),
    (r"output_linear\.weight", "experts.down_proj"),
)


def shared_rules(ours: str) -> tuple[Rule, Rule]:
    """The tensors of the shared feed-forward of a hybrid."""
    stored = f"{LAYER}shared_mlp"
    return (
        Rule(f"{stored}.input_linear.weight", (f"{ours}.gate.weight", f"{ours}.up.weight"), STACKED),
        same(f"{stored}.output_linear.weight", f"{ours}.down.weight"),
    )


_SHARED_WIDTH = f.Int("shared_intermediate_size", default=0)
SHARED_FEED_FORWARD = f.NoneIfZero(_SHARED_WIDTH, _FIELDS.feed_forward(hidden=_SHARED_WIDTH))
"""The feed-forward beside the experts; none of width 0."""

FAMILIES = (
    Family(
        "granite",
        LLAMA,
        _body(_FIELDS.feed_forward(bias=f.Bool("mlp_bias", default=False))),
        {"GraniteForCausalLM": GRANITE_HEAD, "GraniteModel": BODY},
        ignored=("logits_scaling",),  # by the body alone
    ),
    Family(
        "granitemoe",
        llama_tensors(
            "granitemoe",
            *MIXTURE_RULES,
        ),
        _body(GRANITE_MIXTURE),
        {"GraniteMoeForCausalLM": GRANITE_HEAD, "GraniteMoeModel": BODY},
        ignored=("logits_scaling", *TRAINING),
    ),
    Family(
        "granitemoeshared",
        llama_tensors("granitemoeshared", *MIXTURE_RULES, *shared_rules(f"{FEED_FORWARD}.shared")),
        _body({**GRANITE_MIXTURE, "shared": SHARED_FEED_FORWARD}),
        {"GraniteMoeSharedForCausalLM": GRANITE_HEAD, "GraniteMoeSharedModel": BODY},
        ignored=("logits_scaling", *TRAINING),
    ),
    Family(
        "granitemoehybrid",
        llama_tensors(
            "granitemoehybrid",
            *mamba2_rules(f"{LAYER}mamba", f"{BLOCK}mixer"),
            same(f"{LAYER}input_layernorm.weight", f"{BLOCK}mixer_norm.weight"),
            *MIXTURE_RULES,
            *shared_rules(FEED_FORWARD),
            *shared_rules(f"{FEED_FORWARD}.shared"),
            without=("mlp.",),
        ),
        _FIELDS.body(
            attention=None,
            mixer=prefixed_mamba2(_FIELDS.d_model, _FIELDS.eps, f.Activation("hidden_act", "silu")),
            feed_forward=_HybridFeedForward(),
            position=_HYBRID_POSITION,
            varies=(
                LayersOf(
                    FULL,
                    {"attention": _FIELDS.attention(**GRANITE_ATTENTION), "mixer": None},
                    _kinds,
                    _stated,
                ),
            ),
            **MULTIPLIED,
        ),
        {"GraniteMoeHybridForCausalLM": GRANITE_HEAD, "GraniteMoeHybridModel": BODY},
        ignored=("logits_scaling", "mamba_chunk_size", *OF_ROPE, *TRAINING),
    ),
)
