"""Falcon-H1 (TII, 2025): ``FalconH1Config``, ``FalconH1Model`` and its head: attention and Mamba-2 side by side, with multipliers."""

from __future__ import annotations

import math

from specs.base.base import Spec
from specs.kinds.mamba2 import Mamba2
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.llama_like import BLOCK, LAYER, LlamaFields, layer_modules, llama_tensors
from zoo.families.common.mamba import mamba2, mamba2_rules, mixer_head_width
from zoo.families.common.template import Data, Field, FieldContext

_FIELDS = LlamaFields(
    vocab_size=128000, hidden_size=4096, intermediate_size=14336, layers=32, heads=32, kv_heads=8,
    context=8192, eps=1e-5,
)  # fmt: skip


def _multiplier(name: str) -> f.Float:
    return f.Float(name, default=1.0)


class _Multipliers(Field):
    """Multipliers in a list, by their keys in a spec."""

    def __init__(self, name: str, *keys: str) -> None:
        self.name, self.keys = name, keys

    def read(self, config: Config) -> Data:
        multipliers = config.list(self.name, default=[1.0] * len(self.keys))
        if len(multipliers) != len(self.keys) or not all(
            type(multiplier) in (int, float) for multiplier in multipliers
        ):
            config.refuse(self.name, f"must be {len(self.keys)} numbers")
        return dict(zip(self.keys, map(float, multipliers), strict=True))

    def write(self, value: Spec, context: FieldContext) -> Data:
        return {self.name: [getattr(value, key) for key in self.keys]}


def _multiplied(multiplier: float, config: Config) -> float | None:
    """The factor on attention scores: the usual one for the heads' width, times the multiplier of keys."""
    return None if multiplier == 1.0 else multiplier * _FIELDS.heads.width.read(config) ** -0.5


def _multiplier_of(scale: float | None, context: FieldContext) -> float:
    return 1.0 if scale is None else _quotient(scale, context.head_width() ** -0.5)


def _quotient(product: float, factor: float) -> float:
    """The number whose product with ``factor`` is nearest to ``product``: the shortest of those that rounding leaves."""
    quotient = product / factor
    near = (quotient, math.nextafter(quotient, 0.0), math.nextafter(quotient, math.inf))
    return min((float(f"{quotient:.15g}"), *near), key=lambda candidate: abs(candidate * factor - product))


def _width(config: Config) -> int:
    """The width of all Mamba-2 heads together, which is a multiple of ``d_model`` where null is stated."""
    if config.null("mamba_d_ssm"):
        return int(config.int("mamba_expand", default=2) * _FIELDS.d_model.read(config))
    config.ignore("mamba_expand")
    return int(config.int("mamba_d_ssm", default=1024))


_HEADS = f.Int("mamba_n_heads", default=128)
_HEAD_WIDTH = mixer_head_width("mamba_d_head", f.Derived(_width), _HEADS)


class _Width(Field):
    """The width of all Mamba-2 heads together, which must fit them."""

    component = Mamba2

    def read(self, config: Config) -> Data:
        heads, head_dim = _HEADS.read(config), _HEAD_WIDTH.read(config)
        if heads * head_dim != _width(config):
            config.refuse(
                "mamba_d_ssm", f"must be the width of {heads} heads of {head_dim}, {heads * head_dim}"
            )
        return {}

    def write(self, value: Mamba2, context: FieldContext) -> Data:
        return {"mamba_d_ssm": value.width}


_MIXER = {
    **mamba2(
        heads=_HEADS,
        head_dim=_HEAD_WIDTH,
        expand=None,
        d_model=_FIELDS.d_model,
        state_size=f.Int("mamba_d_state", default=256),
        groups=f.Int("mamba_n_groups", default=1),
        kernel_size=f.Int("mamba_d_conv", default=4),
        activation=f.Activation("hidden_act", "silu"),
        bias=f.Equal(*(f.Bool(name, default=False) for name in ("mamba_proj_bias", "projectors_bias"))),
        convolution_bias=f.Bool("mamba_conv_bias", default=True),
        eps=_FIELDS.eps,
        norm=f.When(
            f.Bool("mamba_rms_norm", default=False),
            {
                "eps": _FIELDS.eps,
                "gate": f.Choice("mamba_norm_before_gate", {True: "after", False: "before"}, default=True),
            },
        ),
        multipliers={
            "input": _multiplier("ssm_in_multiplier"),
            "*": _Multipliers("ssm_multipliers", "gate", "value", "key", "query", "step"),
            "output": _multiplier("ssm_out_multiplier"),
        },
    ),
    "*": _Width(),
}

FAMILIES = (
    Family(
        "falcon_h1",
        llama_tensors(
            "falcon_h1",
            *mamba2_rules(f"{LAYER}mamba", f"{BLOCK}mixer"),
            *layer_modules({"pre_ff_layernorm": "feed_forward_norm"}),
            *layer_modules(
                {f"feed_forward.{part}_proj": f"feed_forward.{part}" for part in ("gate", "up", "down")}
            ),
            without=("post_attention_layernorm", "mlp."),
            final_norm="final_layernorm",
        ),
        _FIELDS.body(
            attention={
                "bias": f.Bias("attention_bias", default=False),
                "scale": f.Computed(_multiplier("key_multiplier"), _multiplied, _multiplier_of),
                "multipliers": {
                    "input": _multiplier("attention_in_multiplier"),
                    "output": _multiplier("attention_out_multiplier"),
                },
            },
            mixer=_MIXER,
            feed_forward=_FIELDS.feed_forward(
                bias=f.Bool("mlp_bias", default=False),
                multipliers={"*": _Multipliers("mlp_multipliers", "gate", "output")},
            ),
            more={"embedding": {"scale": f.Factor("embedding_multiplier")}},
        ),
        {
            "FalconH1ForCausalLM": language_modeling(
                tied=False, bias=False, scale=f.Factor("lm_head_multiplier")
            ),
            "FalconH1Model": BODY,
        },
        ignored=(
            "lm_head_multiplier",  # by the body alone
            "mamba_norm_before_gate",  # where there is no norm
            "mamba_chunk_size",
            "num_logits_to_keep",
            "layer_types",
            "layers_block_type",  # which are all "hybrid"
        ),
    ),
)
