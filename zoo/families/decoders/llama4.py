"""Llama 4 (Meta, 2025), the text models: ``Llama4ForCausalLM``, ``Llama4TextModel``.

Attention in chunks with rotation, and in every fourth layer attention to everything without; mixtures whose weights multiply
what experts read.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.kinds.block import BlockParts
from specs.kinds.position import QueryScaling
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.hybrid import read_kinds
from zoo.families.common.layers import FULL, LayerVariation, NoRopeLayers
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

_FIELDS = LlamaFields(
    vocab_size=202048, hidden_size=5120, intermediate_size=8192, layers=48, heads=40, kv_heads=8, head_dim=128,
    context=131072, eps=1e-5,
)  # fmt: skip
_CHUNKED, _ROUTED = "chunked_attention", "moe_layers"


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


class _Global(NoRopeLayers):
    """The layers without rotation, and therefore without norms of what is rotated."""

    name = "global"
    differs = {
        "attention": {"position": {"kind": "none", "query_scaling": _Growth()}, "qk_norm": None},
    }


class _Chunked(LayerVariation):
    """The layers that attend within chunks: by default those that rotate, where there is a size of chunks."""

    name = "chunked"
    differs = {"attention": {"chunk": f.Int("attention_chunk_size", default=8192, null=True)}}

    def read(self, config: Config, depth: int) -> list[bool]:
        size = read(self.differs["attention"]["chunk"], config)
        kinds = read_kinds(config, "layer_types", depth, (FULL, _CHUNKED))
        if kinds is None:
            return [rotated and size is not None for rotated in NoRopeLayers.rotated(config, depth)]
        if _CHUNKED in kinds and size is None:
            config.refuse("attention_chunk_size", f"must be a number: there are layers of {_CHUNKED}")
        return [kind == _CHUNKED for kind in kinds]

    def holds(self, block: BlockParts, index: int) -> bool:
        return getattr(block.attention, "chunk", None) is not None

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        return {"layer_types": [_CHUNKED if chunked else FULL for chunked in where]}


class _Norms(Field):
    """Norms of rotated queries and keys without weights."""

    part: Template = {"norm": {**_FIELDS.norm, "weight": False}, "over": "head", "after_rotation": True}

    def read(self, config: Config) -> Data | None:
        return read(self.part, config) if config.bool("use_qk_norm", default=True) else None

    def write(self, value: object, context: FieldContext) -> Data:
        attentions = (block.attention for block in context.stack.layer_blocks())
        return {
            "use_qk_norm": any(getattr(attention, "qk_norm", None) is not None for attention in attentions)
        }


class _RoutedStep(DenseLayers):
    """The layers without a mixture: all but every interleave_moe_layer_step-th, or all but moe_layers."""

    def read(self, config: Config, depth: int) -> list[bool]:
        step = config.int("interleave_moe_layer_step", default=1)
        routed = config.list(_ROUTED)
        if routed is None:
            if step < 1:
                config.refuse("interleave_moe_layer_step", f"must be at least 1, or {_ROUTED} a list")
            return [(layer + 1) % step != 0 for layer in range(depth)]
        if not all(type(layer) is int for layer in routed):
            config.refuse(_ROUTED, "must be a list of layers by number, from 0")
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
            attention={"bias": f.Bias("attention_bias", default=False), "qk_norm": _Norms()},
            position=_FIELDS.rope(theta=500000.0, whole=WHOLE_HEADS, layout="interleaved"),
            feed_forward=_MIXTURE,
            varies=(
                _Chunked(),
                _Global(),
                _RoutedStep(_FIELDS.feed_forward(hidden=f.Int("intermediate_size_mlp", default=16384))),
            ),
        ),
        {"Llama4ForCausalLM": language_modeling(tied=False, bias=False), "Llama4TextModel": BODY},
        ignored=TRAINING,
    ),
)
