"""Common parts of decoders: parts of their specs, and the tensors of their heads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specs.kinds.attention import MultiHeadShape
from specs.model.model import Model
from zoo.families.common.fields import Float
from zoo.families.common.tensors import Rule, Tensors, affine, same
from zoo.families.common.transforms import Grouped

OUTSIDE = ("lm_head.", "score.", "classifier.", "qa_outputs.")
"""The heads of decoders, whose names have no prefix."""

OPTIONAL = tuple(f"{name}*" for name in OUTSIDE)
"""The tensors of heads, which a spec with another head or with a tied one does not use."""

ROTATIONS = ("layers.*.self_attn.rotary_emb.inv_freq", "rotary_emb.inv_freq")
"""Rotary frequencies that old checkpoints store."""


def layer_norm(name: str, default: float = 1e-5, **more: Any) -> dict[str, Any]:
    """A layer norm whose eps is a field."""
    return {"kind": "layer_norm", "eps": Float(name, default=default), **more}


def decoder_heads(*, tokens: str = "classifier") -> Mapping[str, tuple[Rule, ...]]:
    """The heads of decoders; ``tokens`` is the name of the matrix that classifies tokens."""
    return {
        "language_modeling": affine("lm_head", "head.vocabulary"),
        "classification": (same("score.weight", "head.labels.weight"),),
        "token_classification": affine(tokens, "head.labels"),
        "question_answering": affine("qa_outputs", "head.span"),
    }


def decoder_tensors(name: str, prefix: str, *rules: Rule, tokens: str = "classifier", **more: Any) -> Tensors:
    """The tensors of a decoder with the usual heads."""
    default: dict[str, Any] = {
        "heads": decoder_heads(tokens=tokens),
        "outside": OUTSIDE,
        "optional": OPTIONAL,
    }
    return Tensors(name, rules, prefix=prefix, **{**default, **more})


def query_key_value(block: str) -> tuple[str, str, str]:
    """The modules whose matrices are fused."""
    return f"{block}.attention.query", f"{block}.attention.key", f"{block}.attention.value"


def grouped(spec: Model) -> Grouped:
    """Queries, keys and values fused group by group: as many groups as the first such attention has, or one."""
    attentions = (block.attention for block in spec.last_stack.layer_blocks())
    heads = (attention.key_value_heads for attention in attentions if isinstance(attention, MultiHeadShape))
    return Grouped(next(heads, 1))
