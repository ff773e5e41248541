"""Granite with windows and sinks (IBM, 2026): ``GraniteSWAConfig``, ``GraniteMoeSWAConfig`` and their models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.layer_lists import all_but_every
from zoo.families.common.llama_like import BLOCK, LAYER, WHOLE_HEADS, LlamaFields, llama_tensors
from zoo.families.common.mixtures import TRAINING
from zoo.families.common.rope import RopeField
from zoo.families.common.template import Data, FieldContext, Template
from zoo.families.common.tensors import same
from zoo.families.common.unrotated_layers import UnrotatedLayers
from zoo.families.common.windowed_layers import Windows
from zoo.families.decoders.granite import (
    FEED_FORWARD,
    GRANITE_ATTENTION,
    GRANITE_MIXTURE,
    LOGITS,
    MIXTURE_RULES,
    MULTIPLIED,
    SHARED_FEED_FORWARD,
    shared_rules,
)

_THETAS = "layer_rope_theta"


def _bases(config: Config) -> list[float] | None:
    """The base of each layer's rotation, 0 for none; None where a config does not list them."""
    bases = config.list(_THETAS)
    if bases is None:
        return None
    if not all(type(base) in (int, float) and base >= 0 for base in bases):
        config.refuse(_THETAS, "must be a list of numbers, which are 0 for layers that do not rotate")
    if len(set(filter(None, bases))) > 1:
        config.refuse(_THETAS, "must have one number besides 0: several bases are not supported")
    return list(bases)


class _Rope(RopeField):
    """The rotation of the layers that rotate, whose base each may state."""

    def read(self, config: Config) -> Data:
        rotation = super().read(config)
        base = max(_bases(config) or [0])
        return {**rotation, "theta": float(base)} if base else rotation


class _Unrotated(UnrotatedLayers):
    """The layers that do not rotate, whose base is 0."""

    def read(self, config: Config, depth: int) -> list[bool]:
        bases = _bases(config)
        if bases is not None and len(bases) != depth:
            config.refuse_entries(_THETAS, depth)
        return [False] * depth if bases is None else [not base for base in bases]

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        theta = getattr(context.model.position_of(context.stack), "theta", 0)
        return {_THETAS: [0 if unrotated else theta for unrotated in where]}


def _body(fields: LlamaFields, feed_forward: Template) -> Template:
    windows = Windows("local", f.Int("sliding_window", default=128, null=True), all_but_every(4, first=0))
    return fields.body(
        attention={**GRANITE_ATTENTION, "sinks": True},
        position=_Rope(fields.heads.width, fields.context, whole=WHOLE_HEADS),
        feed_forward=feed_forward,
        varies=(windows, _Unrotated()),
        **MULTIPLIED,
    )


_FIELDS = LlamaFields(
    vocab_size=100352,
    hidden_size=2560,
    intermediate_size=8192,
    layers=24,
    heads=20,
    kv_heads=4,
    context=8192,
    eps=1e-5,
)
_MIXTURE_RULES = tuple(replace(rule, stored=rule.also[-1], also=(rule.stored,)) for rule in MIXTURE_RULES)
"""The mixture under the names that it has in memory, which transformers stores here."""
_SINKS = same(f"{LAYER}self_attn.sinks", f"{BLOCK}attention.sinks")


def _classes(prefix: str, *, tied: bool) -> dict[str, Any]:
    scores = language_modeling(tied=tied, bias=False, scale=LOGITS)
    return {f"{prefix}ForCausalLM": scores, f"{prefix}Model": BODY}


FAMILIES = (
    Family(
        "granite_swa",
        llama_tensors("granite_swa", _SINKS),
        _body(_FIELDS, _FIELDS.feed_forward(bias=f.Bool("mlp_bias", default=False))),
        _classes("GraniteSWA", tied=True),
        ignored=("logits_scaling",),  # by the body alone
    ),
    Family(
        "granitemoe_swa",
        llama_tensors("granitemoe_swa", _SINKS, *_MIXTURE_RULES, *shared_rules(f"{FEED_FORWARD}.shared")),
        _body(LlamaFields(), {**GRANITE_MIXTURE, "shared": SHARED_FEED_FORWARD}),
        _classes("GraniteMoeSWA", tied=False),
        ignored=("logits_scaling", *TRAINING),
    ),
)
