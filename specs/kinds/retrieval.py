"""Heads for retrieval: a vector for each token, and a weight for each term of the vocabulary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from specs.base.base import OmitDefault, Width
from specs.base.descriptions import ValueDescriptions
from specs.base.registry import register
from specs.base.words import WIDTHS, Output, PartContext, Step, product
from specs.kinds.head import HeadKind, MaskedScores, TransformingHead, dense_steps

TOKEN_VECTORS = "token_embeddings"
"""The output with a vector for each token, as sentence-transformers names it."""
TERM_WEIGHTS = "sentence_embedding"
"""The output with a weight for each term, as sentence-transformers names it."""


@register("head")
class MultiVector(TransformingHead):
    """One vector for each token, compared by late interaction (ColBERT: Khattab and Zaharia, 2020): transform, projection,
    normalisation. Gives `token_embeddings`, batch x tokens x width.

    The score of a text for a query is the sum, over the query's tokens, of the largest product with a token of the text. Which
    tokens count is the caller's choice, as queries may be extended by mask tokens and punctuation left out: vectors of padding are
    there, and mean nothing.
    """

    kind: Literal["multi_vector"] = "multi_vector"
    compared_by: ClassVar[Literal["late interaction"]] = "late interaction"
    projection: Width | None = None
    """Width of a projection of every vector (ColBERT: 128). Default: no projection."""
    projection_bias: Annotated[bool, OmitDefault()] = False
    """Whether the projection adds a bias (ColPali)."""
    normalize: bool = True
    """Whether every vector is divided by its Euclidean norm."""

    @property
    def vector_output(self) -> str:
        return TOKEN_VECTORS

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        yield from dense_steps(self)
        if self.projection is not None:
            yield Step("Projection", "projection", (WIDTHS,))
        if self.normalize:
            yield Step("Divided by its length")
        yield Output("Token vectors", product("B", context.length, self.projection or context.width))

    def why_insensitive(self, width: int) -> str:
        single = self.normalize and (self.projection or width) == 1
        return super().why_insensitive(width) or (
            "a unit vector of width 1 carries only a sign" if single else ""
        )


@register("head")
class Sparse(MaskedScores):
    """A weight, 0 or more, for each term of the vocabulary (SPLADE: Formal et al., 2021): the scores of masked tokens, of which each
    term keeps `log(1 + max(score, 0))`, reduced over the tokens. Gives `sentence_embedding`, batch x vocabulary."""

    kind: Literal["sparse"] = "sparse"
    stored_as: ClassVar[str] = "masked_language_modeling"
    scores_vocabulary: ClassVar[bool] = False
    compared_by: ClassVar[Literal["vectors"]] = "vectors"  # type: ignore[assignment]
    pooling: Annotated[
        Literal["max", "sum"],
        ValueDescriptions(
            {
                "max": "The largest weight that a token gives the term (SPLADE v2 and later).",
                "sum": "The sum of the weights that all tokens give the term (SPLADE).",
            }
        ),
    ] = "max"
    """Reduction of a term's weights over the tokens."""
    logarithms: Annotated[Literal[1, 2], OmitDefault()] = 1
    """How many times `log(1 + x)` is taken of a positive score (OpenSearch's models: 2)."""

    @property
    def vector_output(self) -> str:
        return TERM_WEIGHTS

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        assert context.vocab_size is not None
        yield from dense_steps(self)
        yield Step("Scores of terms", "vocabulary", (WIDTHS,))
        yield Step("log(1 + max(score, 0))" if self.logarithms == 1 else "log(1 + log(1 + max(score, 0)))")
        yield Step("Pooling", details=(f"{self.pooling} of tokens",))
        yield Output("Term weights", product("B", context.vocab_size))
