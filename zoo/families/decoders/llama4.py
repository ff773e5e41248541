"""Llama 4 (Meta, 2025), the text models: ``Llama4ForCausalLM``, ``Llama4TextModel``.

Attention in chunks with rotation, and in every fourth layer attention to everything without; mixtures whose weights multiply
what experts read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specs.kinds.position import QueryScaling
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.hybrid import CHUNKED, LayersOf
from zoo.families.common.layer_lists import FULL, read_kinds, read_numbers
from zoo.families.common.llama_like import (
    BLOCK,
    LAYER,
    WHOLE_HEADS,
    LlamaFields,
    layer_modules,
    layer_weights,
    llama_tensors,
)
from zoo.families.common.mixtures import TRAINING, DenseLayers
from zoo.families.common.template import Data, Field, FieldContext, Template, read
from zoo.families.common.tensors import Rule
from zoo.families.common.transforms import Stacked, Transposed
from zoo.families.common.unrotated_layers import NoRopeLayers

_FIELDS = LlamaFields(
    vocab_size=202048, hidden_size=5120, intermediate_size=8192, layers=48, heads=40, kv_heads=8, head_dim=128,
    context=131072, eps=1e-5,
)  # fmt: skip
_ROUTED = "moe_layers"


class _Growth(Field):
    """The growth of queries that are not rotated; none by a factor of 0."""

    def read(self, config: Config) -> Data | None:
        beta = config.float("attn_scale", default=0.1)
        length = config.int("floor_scale", default=8192)
        tuned = config.bool("attn_temperature_tuning", default=True)
        return {"beta": beta, "length": length, "offset": 1} if tuned and beta else None

    def write(self, value: QueryScaling | None, context: FieldContext) -> Data:
        if value is None:
            return {"attn_temperature_tuning": False}
        return {"attn_temperature_tuning": True, "attn_scale": value.beta, "floor_scale": value.length}


_GLOBAL = NoRopeLayers(
    "global", {"attention": {"position": {"kind": "none", "query_scaling": _Growth()}, "qk_norm": None}}
)
"""The layers without rotation, and therefore without norms of what is rotated."""

_CHUNK = f.Int("attention_chunk_size", default=8192, null=True)


def _kinds(config: Config, depth: int) -> list[str]:
    """The words for all layers: by default, those that rotate attend within chunks, if there is a size of chunks."""
    size = _CHUNK.read(config)
    kinds = read_kinds(config, "layer_types", depth, (FULL, CHUNKED))
    if kinds is None:
        rotated = NoRopeLayers.rotated(config, depth)
        return [CHUNKED if rotates and size is not None else FULL for rotates in rotated]
    if CHUNKED in kinds and size is None:
        config.refuse("attention_chunk_size", f"must be a number: there are layers of {CHUNKED}")
    return kinds


_CHUNKS = LayersOf(
    CHUNKED,
    {"attention": {"chunk": _CHUNK}},
    _kinds,
    word=lambda block: FULL if getattr(block.attention, "chunk", None) is None else CHUNKED,
)
"""The layers that attend within chunks."""


def _norm_is_used(norm: Any, context: FieldContext) -> bool:
    attentions = (block.attention for block in context.stack.layer_blocks())
    return any(getattr(attention, "qk_norm", None) is not None for attention in attentions)


_NORM: Template = {"norm": {**_FIELDS.norm, "weight": False}, "over": "head", "after_rotation": True}
_NORMS = f.Computed(
    f.Bool("use_qk_norm", default=True),
    lambda used, config: read(_NORM, config) if used else None,
    _norm_is_used,
)
"""Norms of rotated queries and keys without weights."""


class _RoutedStep(DenseLayers):
    """The layers without a mixture: all but every interleave_moe_layer_step-th, or all but moe_layers."""

    def read(self, config: Config, depth: int) -> list[bool]:
        step = config.int("interleave_moe_layer_step", default=1)
        routed = read_numbers(config, _ROUTED)
        if routed is None:
            if step < 1:
                config.refuse("interleave_moe_layer_step", f"must be at least 1, or {_ROUTED} a list")
            return [(layer + 1) % step != 0 for layer in range(depth)]
        return [layer not in routed for layer in range(depth)]

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        routed = [layer for layer, dense in enumerate(where) if not dense]
        step = routed[0] + 1 if routed else 0  # 0 is what other readers take for none
        return {"interleave_moe_layer_step": step, _ROUTED: routed}


_MIXTURE = {
    "kind": "mixture",
    "experts": f.Int("num_local_experts", default=16),
    "top_k": f.Int("num_experts_per_tok", default=1),
    "expert": _FIELDS.feed_forward(),
    "shared": _FIELDS.feed_forward(),
    "router": {"scores": "sigmoid", "normalize": False, "weighs": "input"},
}
_STORED, _OURS = f"{LAYER}feed_forward.", f"{BLOCK}feed_forward."
_PROJECTIONS = ("gate", "up", "down")

FAMILIES = (
    Family(
        "llama4_text",
        llama_tensors(
            "llama4_text",
            *layer_modules({f"feed_forward.{name}_proj": f"feed_forward.{name}" for name in _PROJECTIONS}),
            *layer_weights(
                {"feed_forward.router": "feed_forward.router"}
                | {
                    f"feed_forward.shared_expert.{name}_proj": f"feed_forward.shared.{name}"
                    for name in _PROJECTIONS
                }
            ),
            Rule(
                f"{_STORED}experts.gate_up_proj",
                (f"{_OURS}experts.gate.weight", f"{_OURS}experts.up.weight"),
                Transposed(Stacked(1)),
            ),
            Rule(f"{_STORED}experts.down_proj", (f"{_OURS}experts.down.weight",), Transposed()),
            without=("mlp.",),
        ),
        _FIELDS.body(
            attention={"bias": f.Bias("attention_bias", default=False), "qk_norm": _NORMS},
            position=_FIELDS.rope(theta=500000.0, whole=WHOLE_HEADS, layout="interleaved"),
            feed_forward=_MIXTURE,
            varies=(
                _CHUNKS,
                _GLOBAL,
                _RoutedStep(_FIELDS.feed_forward(hidden=f.Int("intermediate_size_mlp", default=16384))),
            ),
        ),
        {"Llama4ForCausalLM": language_modeling(tied=False, bias=False), "Llama4TextModel": BODY},
        ignored=TRAINING,
    ),
)
