"""Jamba (AI21, 2024): ``JambaConfig``, ``JambaModel`` and its heads: Mamba, some attention without positions, and mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, LAST_TOKEN, language_modeling
from zoo.families.common.hybrid import LayersOf
from zoo.families.common.layer_lists import FULL, LINEAR
from zoo.families.common.llama_like import BLOCK, LAYER, LlamaFields, layer_modules, llama_tensors
from zoo.families.common.mamba import mamba, mamba_rules
from zoo.families.common.mixtures import TRAINING, DenseLayers, experts
from zoo.families.common.template import Data, FieldContext, Template, UnfitError
from zoo.families.common.tensors import same

_FIELDS = LlamaFields(
    vocab_size=65536, hidden_size=4096, intermediate_size=14336, layers=32, heads=32, kv_heads=8, context=262144,
)  # fmt: skip


def _period(config: Config, name: str, period: int, offset: int) -> tuple[int, int]:
    """Every how many layers something comes, and where first."""
    every = config.int(f"{name}_layer_period", default=period)
    first = config.int(f"{name}_layer_offset", default=offset)
    if every < 1:
        config.refuse(f"{name}_layer_period", "must be at least 1")
    if not 0 <= first < every:
        config.refuse(f"{name}_layer_offset", f"must be from 0 to {every - 1}")
    return every, first


def _stated_period(name: str, where: Sequence[bool]) -> Data:
    """The fields that state where something comes.  Raises :class:`UnfitError` where it is not at equal distances."""
    depth, places = len(where), [layer for layer, holds in enumerate(where) if holds]
    first = places[0] if places else depth
    every = places[1] - first if len(places) > 1 else depth + 1
    if first >= every or [layer % every == first for layer in range(depth)] != [*where]:
        raise UnfitError(f"{name} layers that are not a fixed number of layers apart")
    return {f"{name}_layer_period": every, f"{name}_layer_offset": first}


def _kinds(config: Config, depth: int) -> list[str]:
    every, first = _period(config, "attn", 8, 4)
    config.ignore("layers_block_type", "layer_types")  # which follow from it
    return [FULL if layer % every == first else LINEAR for layer in range(depth)]


def _stated(kinds: Sequence[str]) -> Data:
    return _stated_period("attn", [kind == FULL for kind in kinds])


class _DenseLayers(DenseLayers):
    """The layers with an ordinary feed-forward: all where there is one expert."""

    def read(self, config: Config, depth: int) -> list[bool]:
        every, first = _period(config, "expert", 2, 1)
        alone = config.int("num_experts", "num_local_experts", default=16) == 1
        return [alone or layer % every != first for layer in range(depth)]

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        if all(where):
            return {"num_experts": 1}
        return _stated_period("expert", [not dense for dense in where])


_MIXTURE: dict[str, Any] = {
    "kind": "mixture",
    "experts": f.Mapped(
        f.Int("num_experts", "num_local_experts", default=16),
        lambda count: max(2, count),
        lambda count: count,
    ),  # a single one is no mixture
    "top_k": f.Int("num_experts_per_tok", default=2),
    "expert": _FIELDS.feed_forward(),
    "router": {"normalize": False},
}


def mixer(d_model: f.Int, activation: f.Activation, **more: Template) -> Template:
    """A Mamba mixer by the fields of Jamba's config, whose names Zamba's shares."""
    return mamba(
        d_model=d_model,
        expand="mamba_expand",
        state_size=f.Int("mamba_d_state", default=16),
        step_rank="mamba_dt_rank",
        kernel_size=f.Int("mamba_d_conv", default=4),
        activation=activation,
        bias=f.Bool("mamba_proj_bias", default=False),
        convolution_bias=f.Bool("mamba_conv_bias", default=True),
        **more,
    )


_MIXER = mixer(_FIELDS.d_model, f.Activation("hidden_act", "silu"), norm=_FIELDS.norm)
_TENSORS = llama_tensors(
    "jamba",
    *mamba_rules(f"{LAYER}mamba", f"{BLOCK}mixer"),
    same(f"{LAYER}input_layernorm.weight", f"{BLOCK}mixer_norm.weight"),
    *layer_modules({"pre_ff_layernorm": "feed_forward_norm"}),
    *layer_modules({f"feed_forward.{part}_proj": f"feed_forward.{part}" for part in ("gate", "up", "down")}),
    *experts("feed_forward", "gate_proj", "up_proj", "down_proj", router="router"),
    without=("post_attention_layernorm", "mlp."),
    final_norm="final_layernorm",
)

FAMILIES = (
    Family(
        "jamba",
        _TENSORS,
        _FIELDS.body(
            attention=None,
            mixer=_MIXER,
            feed_forward=_MIXTURE,
            position={"kind": "none"},
            varies=(
                LayersOf(FULL, {"attention": _FIELDS.attention(bias=False), "mixer": None}, _kinds, _stated),
                _DenseLayers(_FIELDS.feed_forward()),
            ),
        ),
        {
            "JambaForCausalLM": language_modeling(tied=False, bias=False),
            "JambaModel": BODY,
            "JambaForSequenceClassification": LAST_TOKEN,
        },
        ignored=("use_mamba_kernels", "use_mambapy", "use_associative_scan", "num_logits_to_keep", *TRAINING),
    ),
)
