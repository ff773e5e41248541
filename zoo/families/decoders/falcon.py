"""Falcon (Almazrouei et al., 2023) in its layouts, 7B, 40B, 11B and RefinedWeb: ``FalconConfig``, ``FalconModel`` and its heads.

Queries, keys and values are stored as one, group by group of query heads with a common key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from specs.kinds.attention import MultiHeadShape
from specs.kinds.block import BlockParts
from specs.kinds.norm_placements import Parallel
from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.attention import per_head
from zoo.families.common.blocks import mlp
from zoo.families.common.config import Config
from zoo.families.common.decoders import decoder_tensors, grouped, layer_norm, query_key_value
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.layers import Layers
from zoo.families.common.llama_like import WHOLE_HEADS
from zoo.families.common.rope import OF_ROPE, RopeField
from zoo.families.common.template import Data, Field, FieldContext
from zoo.families.common.tensors import Rule, affine, fused, modules

_D_MODEL = f.Int("n_embed", "hidden_size", default=4544, written=("hidden_size",))
_HEADS = f.Int("num_attention_heads", "n_head", default=71)
_NEW = f.Bool("new_decoder_architecture", default=False)


def _is_separate(block: BlockParts) -> bool:
    return isinstance(block, Parallel) and block.norms == "separate"


class _Block(Field):
    """The kind of block, and the number of its norms."""

    component = BlockParts

    def read(self, config: Config) -> Data:
        new = _NEW.read(config)
        parallel = config.bool("parallel_attn", default=True)
        norms = config.int("num_ln_in_parallel_attn", default=2 if new else 1)
        if new and not parallel:
            config.refuse("parallel_attn", "must be true where new_decoder_architecture is")
        if norms not in ((1, 2) if new else (1,)):
            config.refuse(
                "num_ln_in_parallel_attn",
                f"must be {'1 or 2' if new else '1 where new_decoder_architecture is false'}",
            )
        if not parallel:
            return {"kind": "pre_norm"}
        return {"kind": "parallel", "norms": "separate" if norms == 2 else "shared"}

    def write(self, value: BlockParts, context: FieldContext) -> Data:
        return {
            "parallel_attn": isinstance(value, Parallel),
            "num_ln_in_parallel_attn": 2 if _is_separate(value) else 1,
        }


class _Heads(Field):
    """The key/value heads: the new layout states their number, the old one whether there is only one."""

    component = MultiHeadShape

    def read(self, config: Config) -> Data:
        heads, new = _HEADS.read(config), _NEW.read(config)
        kv_heads = config.int("num_kv_heads", "n_head_kv", default=heads)
        multi_query = config.bool("multi_query", default=True)
        if not new and not multi_query and kv_heads != heads:
            config.refuse(
                "num_kv_heads",
                f"must be num_attention_heads, which is {heads}, where neither multi_query nor "
                "new_decoder_architecture is true",
            )
        if new:
            return {"kind": "grouped_query", "heads": heads, "kv_heads": kv_heads}
        return {"kind": "multi_query" if multi_query else "multi_head", "heads": heads}

    def write(self, value: MultiHeadShape, context: FieldContext) -> Data:
        kv_heads = value.key_value_heads
        new = _is_separate(context.block) or kv_heads not in (1, value.heads)
        return {
            "num_attention_heads": value.heads,
            "num_kv_heads": kv_heads if new or kv_heads > 1 else value.heads,
            "multi_query": kv_heads == 1,
            "new_decoder_architecture": new,
        }


def _scale(config: Config) -> float:
    """The scale of ALiBi, the usual scale of scores."""
    width: int = _WIDTH.read(config)
    if width < 1:
        config.refuse("num_attention_heads", f"must divide hidden_size, which is {_D_MODEL.read(config)}")
    return width**-0.5


_WIDTH = per_head(_D_MODEL, _HEADS)
_CONTEXT = f.ContextLength("max_position_embeddings", default=2048)
_BODY = {
    "architecture": "decoder",
    "vocab_size": f.Int("vocab_size", default=65024),
    "d_model": _D_MODEL,
    "context_length": _CONTEXT,
    "position": f.Kinds(
        f.Bool("alibi", default=False),
        {
            True: {"kind": "alibi", "scale": f.Derived(_scale), "precision": "bfloat16"},
            False: RopeField(_WIDTH, _CONTEXT, whole=WHOLE_HEADS),
        },
    ),
    "decoder": Layers(
        f.Depth("num_hidden_layers", "n_layer", default=32),
        {
            "*": _Block(),
            "norm": layer_norm("layer_norm_epsilon"),
            "attention": {
                "*": _Heads(),
                "bias": f.Bias("bias", default=False),
                "dropout": f.Float("attention_dropout", default=0.0),
            },
            "feed_forward": mlp(
                f.Int("ffn_hidden_size", default=f.times(4, _D_MODEL)),
                f.Activation("activation", "gelu"),
                bias=f.Bool("bias", default=False),
            ),
            "dropout": f.Float("hidden_dropout", default=0.0),
        },
    ),
    "initialization": f.normal(),
}

_STORED, _BLOCK = "h.{layer}", "decoder.blocks.{layer}"


def _parallel(spec: Model) -> bool:
    return isinstance(spec.last_stack.layer_blocks()[0], Parallel)


def _sequential(spec: Model) -> bool:
    return not _parallel(spec)


def _norm(module: str, *, parallel: str, sequential: str) -> Iterator[Rule]:
    """Return the norm of a branch, whose name depends on the kind of block."""
    for stored, where in ((parallel, _parallel), (sequential, _sequential)):
        yield from (
            replace(rule, where=where) for rule in affine(f"{_STORED}.{stored}", f"{_BLOCK}.{module}")
        )


_LAYER = {
    "input_layernorm": "norm",
    "self_attention.dense": "attention.output",
    "mlp.dense_h_to_4h": "feed_forward.up",
    "mlp.dense_4h_to_h": "feed_forward.down",
}
_TENSORS = decoder_tensors(
    "falcon",
    "transformer.",
    *modules({"word_embeddings": "embedding.token", "ln_f": "decoder.final_norm"}),
    *modules(_LAYER, f"{_STORED}.", f"{_BLOCK}."),
    *_norm("attention_norm", parallel="ln_attn", sequential="input_layernorm"),
    *_norm("feed_forward_norm", parallel="ln_mlp", sequential="post_attention_layernorm"),
    *fused(f"{_STORED}.self_attention.query_key_value", query_key_value(_BLOCK), grouped, grouped),
)

FAMILIES = (
    Family(
        "falcon",
        _TENSORS,
        _BODY,
        decoder_classes("Falcon", tied=True),
        fixed={
            "apply_residual_connection_post_layernorm": (False, "residuals after the norm are not supported")
        },
        ignored=OF_ROPE,  # beside ALiBi
    ),
)
