"""Parts of Mamba and Mamba-2 layers that families share: their config fields and tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from specs.kinds.mamba2 import Mamba2, StepLimit
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.held import also_named
from zoo.families.common.template import Data, Field, FieldContext, Template, UnfitError
from zoo.families.common.tensors import Rule, Tensors, affine, same
from zoo.families.common.transforms import Depthwise

TIME_STEPS = ("time_step_min", "time_step_max", "time_step_floor", "rescale_prenorm_residual")
"""Fields that say how weights are drawn."""

INFINITY: Any = {"__float__": "Infinity"}
"""How transformers writes infinity in JSON."""


class Expand(Field):
    """The width of a mixer as a multiple of the model's, which must fit its heads."""

    component = Mamba2

    def __init__(self, name: str, default: int, heads: f.Int, head_dim: Field, d_model: f.Int) -> None:
        self.name, self.default = name, default
        self.heads, self.head_dim, self.d_model = heads, head_dim, d_model

    def read(self, config: Config) -> Data:
        expand = config.int(self.name, default=self.default)
        heads, head_dim = self.heads.read(config), self.head_dim.read(config)
        width = expand * self.d_model.read(config)
        if heads * head_dim != width:
            rule = f"times hidden_size must be the width of {heads} heads of {head_dim}, {heads * head_dim}, not {width}"
            config.refuse(self.name, rule)
        return {}

    def write(self, value: Mamba2, context: FieldContext) -> Data:
        expand, rest = divmod(value.width, context.model.d_model)
        if rest:
            raise UnfitError("heads that together are no multiple of d_model")
        return {self.name: expand}


class Steps(Field):
    """The bounds of step sizes; those from 0 to infinity are none."""

    def read(self, config: Config) -> Data | None:
        limits = config.list("time_step_limit", default=[0.0, INFINITY])
        if len(limits) != 2 or not all(_is_bound(limit) for limit in limits):
            config.refuse("time_step_limit", "must be two numbers")
        least, most = (math.inf if limit in (INFINITY, math.inf) else float(limit) for limit in limits)
        if most == math.inf:
            return {"least": least} if least > 0 else None
        return {"least": least, "most": most}

    def write(self, value: StepLimit | None, context: FieldContext) -> Data:
        if value is None:
            return {}
        return {"time_step_limit": [value.least, INFINITY if value.most is None else value.most]}


def _is_bound(value: Any) -> bool:
    return value == INFINITY or type(value) in (int, float)


def mamba2(
    *,
    heads: f.Int,
    head_dim: Field,
    expand: tuple[str, int] | None,
    d_model: f.Int,
    eps: Template,
    **keys: Template,
) -> dict[str, Template]:
    """A Mamba-2 mixer with a family's fields; ``keys`` are the others of its spec.

    ``expand``: the field that its width must follow, and its default.
    """
    width = {} if expand is None else {"*": Expand(*expand, heads, head_dim, d_model)}
    return {
        "kind": "mamba2",
        "heads": heads,
        "head_dim": head_dim,
        **width,
        "norm": {"eps": eps},
        "step_limit": Steps(),
        **keys,
    }


class OrAuto(f.Int):
    """A whole number, or the ``usual_number`` for "auto" or null."""

    def __init__(self, name: str, usual_number: Callable[[Config], int]) -> None:
        super().__init__(name)
        self.usual_number = usual_number

    def read(self, config: Config) -> int:
        name = self.names[0]
        if config.data.get(name) in ("auto", None):
            config.ignore(name)
            return self.usual_number(config)
        number: int = super().read(config)
        return number


def mamba(
    *,
    d_model: f.Int,
    expand: str,
    state_size: Field,
    step_rank: str,
    kernel_size: Field,
    activation: Field,
    bias: Field,
    convolution_bias: Field,
    **more: Template,
) -> Template:
    """A Mamba mixer; the arguments are a family's fields."""
    return {
        "kind": "mamba",
        "width": f.Multiple(f.Int(expand, default=2), d_model, path="mixer.width"),
        "state_size": state_size,
        "step_rank": OrAuto(step_rank, lambda config: -(-int(d_model.read(config)) // 16)),
        "kernel_size": kernel_size,
        "activation": activation,
        "bias": bias,
        "convolution_bias": convolution_bias,
        **more,
    }


def mixer_head_width(name: str, width: Field, heads: f.Int) -> OrAuto:
    """The width of a head, by default ("auto") the mixer's width divided by the heads."""

    def quotient(config: Config) -> int:
        count, whole = heads.read(config), width.read(config)
        if count < 1 or whole % count:
            config.refuse(heads.names[0], f"must divide the width of the mixer, which is {whole}")
        return int(whole // count)

    return OrAuto(name, quotient)


def prefixed_mamba2(d_model: f.Int, eps: Field, activation: Field) -> Template:
    """A Mamba-2 mixer whose fields begin with ``mamba_`` (Bamba, Granite 4)."""
    heads, expand = f.Int("mamba_n_heads", default=128), f.Int("mamba_expand", default=2)
    width = f.Derived(lambda config: expand.read(config) * d_model.read(config))
    return mamba2(
        heads=heads,
        head_dim=mixer_head_width("mamba_d_head", width, heads),
        expand=("mamba_expand", 2),
        d_model=d_model,
        state_size=f.Int("mamba_d_state", default=256),
        groups=f.Int("mamba_n_groups", default=1),
        kernel_size=f.Int("mamba_d_conv", default=4),
        activation=activation,
        bias=f.Bool("mamba_proj_bias", default=False),
        convolution_bias=f.Bool("mamba_conv_bias", default=True),
        eps=eps,
    )


NO_MIXERS = {"mamba_n_heads": 1, "mamba_d_head": "auto"}
"""Fields of a model without such layers, which the reference checks all the same."""


def _common_rules(stored: str, ours: str) -> tuple[Rule, ...]:
    """The tensors that both generations have."""
    return (
        *affine(f"{stored}.in_proj", f"{ours}.input"),
        Rule(f"{stored}.conv1d.weight", (f"{ours}.convolution.weight",), Depthwise()),
        same(f"{stored}.conv1d.bias", f"{ours}.convolution.bias"),
        same(f"{stored}.A_log", f"{ours}.rate_log"),
        same(f"{stored}.D", f"{ours}.skip"),
        *affine(f"{stored}.out_proj", f"{ours}.output"),
    )


STORED, OURS = "layers.{layer}.mixer", "decoder.blocks.{layer}.mixer"


def mamba2_rules(stored: str = STORED, ours: str = OURS) -> tuple[Rule, ...]:
    """The tensors of a Mamba-2 mixer."""
    return (
        *_common_rules(stored, ours),
        same(f"{stored}.dt_bias", f"{ours}.step_bias"),
        same(f"{stored}.norm.weight", f"{ours}.norm.weight"),
    )


def mamba_rules(stored: str = STORED, ours: str = OURS) -> tuple[Rule, ...]:
    """The tensors of a Mamba mixer."""
    return (
        *_common_rules(stored, ours),
        same(f"{stored}.x_proj.weight", f"{ours}.selection.weight"),
        *affine(f"{stored}.dt_proj", f"{ours}.step"),
        same(f"{stored}.dt_layernorm.weight", f"{ours}.step_norm.weight"),
        same(f"{stored}.b_layernorm.weight", f"{ours}.b_norm.weight"),
        same(f"{stored}.c_layernorm.weight", f"{ours}.c_norm.weight"),
    )


def backbone_tensors(name: str, *rules: Rule, held: str = "", **more: Any) -> Tensors:
    """The tensors of a model whose layers have one branch each, in ``backbone``, which transformers 5 renames to ``held``."""
    body = (
        same("embeddings.weight", "embedding.token.weight"),
        same("layers.{layer}.norm.weight", "decoder.blocks.{layer}.mixer_norm.weight"),
        *rules,
        same("norm_f.weight", "decoder.final_norm.weight"),
    )
    return Tensors(
        name,
        also_named(body, ("^", held)),
        prefix="backbone.",
        outside=("lm_head.",),
        heads={"language_modeling": affine("lm_head", "head.vocabulary")},
        optional=("lm_head.weight",),
        renamed={"embedding.weight": "embeddings.weight"},
        **more,
    )
