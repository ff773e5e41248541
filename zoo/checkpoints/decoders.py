"""What the checkpoints of decoders have in common."""

from __future__ import annotations

from collections.abc import Mapping

from specs.attention import MultiHeadShape
from specs.model import Model
from zoo.checkpoints.family import Rule, affine, same
from zoo.checkpoints.transforms import Grouped

OUTSIDE = ("lm_head.", "score.", "classifier.", "qa_outputs.")
"""The heads of decoders, whose names have no prefix."""

OPTIONAL = tuple(f"{name}*" for name in OUTSIDE)
"""The tensors of heads: a spec with another head, or with a tied one, has no place for them."""


def decoder_heads(*, tokens: str = "classifier") -> Mapping[str, tuple[Rule, ...]]:
    """The heads of decoders; ``tokens`` is the name of the matrix that classifies tokens."""
    return {
        "language_modeling": affine("lm_head", "head.vocabulary"),
        "classification": (same("score.weight", "head.labels.weight"),),
        "token_classification": affine(tokens, "head.labels"),
        "question_answering": affine("qa_outputs", "head.span"),
    }


def query_key_value(block: str) -> tuple[str, str, str]:
    """The modules whose matrices are fused."""
    return f"{block}.attention.query", f"{block}.attention.key", f"{block}.attention.value"


def grouped(spec: Model) -> Grouped:
    """Queries, keys and values fused group by group."""
    assert spec.decoder is not None
    attention = spec.decoder.layer_blocks()[0].attention
    assert isinstance(attention, MultiHeadShape)
    return Grouped(attention.key_value_heads)
