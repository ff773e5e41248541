"""MiMo-V2-Flash (Xiaomi, 2025): ``MiMoV2FlashConfig``, ``MiMoV2FlashModel`` and its head: values narrower than keys, and windows with
sinks and twice as many key/value heads in five of six layers."""

from __future__ import annotations

from typing import Any

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.layer_lists import read_flags
from zoo.families.common.llama_like import BLOCK, LAYER, LlamaFields, llama_tensors
from zoo.families.common.mixtures import CORRECTION, EXPERTS, TRAINING, ExpertGroups, mixture, sigmoid_router
from zoo.families.common.mlp_kinds import MlpKinds
from zoo.families.common.rope_by_window import RopeByWindow
from zoo.families.common.template import Data
from zoo.families.common.tensors import same
from zoo.families.common.windowed_layers import Windows

_PART = "partial_rotary_factor"


class _Rope(RopeByWindow):
    """The positions, by kind of layer; the rotated part has no default beside a scaling."""

    def read_parameters(self, config: Config, parameters: Config, theta: float | None = None) -> Data:
        if parameters.any("rope_type") not in (None, "default") and not parameters.has(_PART):
            parameters.refuse(_PART, "must be stated beside a scaling")
        return super().read_parameters(config, parameters, theta)


def _default_windows(config: Config, depth: int) -> list[bool]:
    """The layers with a window: those with 1 in published configs, or all but the first and every sixth."""
    flags = read_flags(config, "hybrid_layer_pattern", depth)
    return flags or [layer > 0 and (layer + 1) % 6 != 0 for layer in range(depth)]


def _window(window: int, config: Config) -> int:
    """The tokens that a query sees, itself included; published configs state those before it."""
    before: int | None = config.int("sliding_window_size")
    return window if before is None else before + 1


class _Dense(MlpKinds):
    """The layers without a mixture: listed, or as 0 in published configs, or the first."""

    def read(self, config: Config, depth: int) -> list[bool]:
        if config.has("mlp_layer_types"):
            config.list("moe_layer_freq")
            return super().read(config, depth)
        mixtures = read_flags(config, "moe_layer_freq", depth)
        return super().read(config, depth) if mixtures is None else [not mixture for mixture in mixtures]


_FIELDS = LlamaFields(
    vocab_size=152576, hidden_size=4096, intermediate_size=16384, layers=48, heads=64, head_dim=192,
    context=131072,
)  # fmt: skip
_NORM = {"kind": "rms_norm", "eps": f.Float("rms_norm_eps", "layernorm_epsilon", default=1e-5)}
_KV_HEADS = f.Computed(
    f.Int("num_key_value_heads", default=4),
    lambda count, config: count,
    lambda count, context: count // 2 if context.block.sliding_window is not None else count,
)
"""The key/value heads of the layers without a window, half as many as in the others."""
_VALUE_WIDTH = f.Int("v_head_dim", default=128)
_BIAS = f.Bool("attention_bias", default=False)
_POSITIONS = _Rope(
    _FIELDS.heads.width,
    _FIELDS.context,
    theta=5e6,
    fraction=0.334,
    local=f.Float("swa_rope_theta", default=10000.0),
)
_SCALE = f.Mapped(
    f.Float("attention_value_scale", default=0.707, null=True),
    lambda scale: 1.0 if scale is None else scale,
    lambda scale: scale,
)
_LOCAL: dict[str, Any] = {
    "kv_heads": f.times(2, _KV_HEADS),
    "sinks": True,
    "position": f.Derived(_POSITIONS.read_local),
}

FAMILIES = (
    Family(
        "mimo_v2_flash",
        llama_tensors(
            "mimo_v2_flash",
            *EXPERTS,
            CORRECTION,
            same(
                f"{LAYER}self_attn.attention_sink_bias",
                f"{BLOCK}attention.sinks",
                also=(f"{LAYER}self_attn.sinks",),
            ),
            unused=("mtp.*",),  # guesses further tokens
        ),
        _FIELDS.body(
            attention={
                "kind": "grouped_query",
                "heads": _FIELDS.heads.heads,
                "kv_heads": _KV_HEADS,
                "head_dim": _FIELDS.heads.width,
                "value_dim": _VALUE_WIDTH,
                "bias": {"query": _BIAS, "key": _BIAS, "value": _BIAS, "output": False},
                "multipliers": {"output": _SCALE},  # of the values: nothing is added to their sum
                "dropout": f.Float("attention_dropout", default=0.0),
            },
            norm=_NORM,
            position=_POSITIONS,
            feed_forward=mixture(
                f.Int("n_routed_experts", "num_local_experts", default=256),
                8,
                _FIELDS.feed_forward(hidden=f.Int("moe_intermediate_size", default=2048)),
                router=sigmoid_router(ExpertGroups(1, 1, 2), normalize=True, scale=1.0),
            ),
            varies=(
                Windows(
                    "local",
                    f.Computed(f.Int("sliding_window", default=129), _window),
                    _default_windows,
                    **_LOCAL,
                ),
                _Dense(_FIELDS.feed_forward(), 1),
            ),
        ),
        {"MiMoV2FlashForCausalLM": language_modeling(tied=False, bias=False), "MiMoV2FlashModel": BODY},
        fixed={
            "add_full_attention_sink_bias": (False, "the reference has sinks in layers with a window"),
            "add_swa_attention_sink_bias": (True, "the reference has sinks in all layers with a window"),
            "swa_num_attention_heads": (_FIELDS.heads.heads, "all layers have as many heads"),
            "swa_num_key_value_heads": (f.times(2, _KV_HEADS), "layers with a window have twice as many"),
            "swa_head_dim": (_FIELDS.heads.width, "heads are as wide in all layers"),
            "swa_v_head_dim": (_VALUE_WIDTH, "values are as wide in all layers"),
            _PART: (0.334, "the reference reads it in rope_parameters"),
            "n_shared_experts": (None, "the reference has no shared experts"),
            "scoring_func": ("sigmoid", "the reference has no other"),
            "topk_method": ("noaux_tc", "the reference has no other"),
        },
        ignored=(
            "attention_chunk_size",
            "hybrid_block_size",
            "hybrid_layer_pattern",
            "sliding_window",
            *TRAINING,
        ),
    ),
)
