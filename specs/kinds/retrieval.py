"""Heads for retrieval: vectors of tokens, weights of tokens and of terms of the vocabulary, and several heads at once."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.base import Fault, OmitDefault, RuleContext, Width
from specs.base.descriptions import ValueDescriptions
from specs.base.registry import register
from specs.base.words import WIDTHS, Output, PartContext, Step, product
from specs.kinds.embedding import EmbeddingKind
from specs.kinds.head import Head, HeadKind, PrintedAs
from specs.kinds.transforming_head import TransformingHead, dense_steps, dense_width_faults
from specs.kinds.vocabulary_heads import MaskedScores

TOKEN_VECTORS = "token_embeddings"
"""The output with a vector for each token, as sentence-transformers names it."""
TERM_WEIGHTS = "sentence_embedding"
"""The output with a weight for each term, as sentence-transformers names it."""
TOKEN_WEIGHTS = "token_weights"
"""The output with a weight for each token."""


@register("head")
class MultiVector(TransformingHead):
    """One vector for each token, compared by late interaction (ColBERT: Khattab and Zaharia, 2020): transform, projection,
    normalisation. Gives `token_embeddings`, batch x tokens x width.

    The score of a text for a query is the sum, over the query's tokens, of the largest product with a token of the text. Which
    tokens count is the caller's choice, as queries may be extended by mask tokens and punctuation left out: vectors of padding are
    there, and mean nothing.
    """

    kind: Literal["multi_vector"] = "multi_vector"
    printed_as: ClassVar[PrintedAs] = "rankings"
    embeds_texts: ClassVar[bool] = True
    compared_by: ClassVar[Literal["late interaction"]] = "late interaction"
    dense_width: Annotated[Width | None, OmitDefault()] = None
    """Width of the dense layer. Default: d_model."""
    projection: Width | None = None
    """Width of a projection of every vector (ColBERT: 128). Default: no projection."""
    projection_bias: Annotated[bool, OmitDefault()] = False
    """Whether the projection adds a bias (ColPali)."""
    normalize: bool = True
    """Whether every vector is divided by its Euclidean norm."""

    @property
    def vector_output(self) -> str:
        return TOKEN_VECTORS

    def width(self, d_model: int) -> int:
        """The width of the vectors."""
        return self.projection or self.dense_width or d_model

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from super().faults(context)
        yield from dense_width_faults(self.activation, self.dense_width)

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        yield from dense_steps(self)
        if self.projection is not None:
            yield Step("Projection", "projection", (WIDTHS,))
        if self.normalize:
            yield Step("Divided by its length")
        yield Output("Token vectors", product("B", context.length, self.width(context.width)))

    def why_insensitive(self, width: int) -> str:
        single = self.normalize and self.width(width) == 1
        return super().why_insensitive(width) or (
            "a unit vector of width 1 carries only a sign" if single else ""
        )


@register("head")
class Sparse(MaskedScores):
    """A weight, 0 or more, for each term of the vocabulary (SPLADE: Formal et al., 2021): the scores of masked tokens, of which each
    term keeps `log(1 + max(score, 0))`, reduced over the tokens. Gives `sentence_embedding`, batch x vocabulary."""

    kind: Literal["sparse"] = "sparse"
    printed_as: ClassVar[PrintedAs] = "rankings"
    embeds_texts: ClassVar[bool] = True
    stored_as: ClassVar[str] = "masked_language_modeling"
    scores_vocabulary: ClassVar[bool] = False
    compared_by: ClassVar[Literal["vectors"]] = "vectors"  # type: ignore[assignment]
    weighs_terms: ClassVar[bool] = True
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
    logarithms: Annotated[int, Field(ge=1, le=2), OmitDefault()] = 1
    """How many times `log(1 + x)` is taken of a positive score: 1, or 2 (OpenSearch's models)."""

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


@register("head")
class TokenWeights(HeadKind):
    """A weight, 0 or more, for each token: `max(w . x + b, 0)` (BGE-M3: Chen et al., 2024). Gives `token_weights`, batch x tokens.

    The weight of a term is the largest weight of its tokens, which the caller knows by their ids.
    """

    kind: Literal["token_weights"] = "token_weights"
    printed_as: ClassVar[PrintedAs] = "rankings"
    compared_by: ClassVar[Literal["terms"]] = "terms"
    weighs_terms: ClassVar[bool] = True

    @property
    def vector_output(self) -> str:
        return TOKEN_WEIGHTS

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        yield Step("Weight of each token", "score", (WIDTHS, "max(weight, 0)"))
        yield Output("Token weights", product("B", context.length))


_RETRIEVAL = ("pooled", "multi_vector", "sparse", "token_weights")


@register("head")
class Several(HeadKind):
    """Heads for retrieval that read the same hidden states (BGE-M3: Chen et al., 2024). Gives the outputs of all."""

    kind: Literal["several"] = "several"
    printed_as: ClassVar[PrintedAs] = "rankings"
    compared_by: ClassVar[Literal["heads"]] = "heads"
    embeds_texts: ClassVar[bool] = True
    title: ClassVar[str] = "Several heads"
    heads: dict[str, Head]
    """The heads by name, each `pooled`, `multi_vector`, `sparse` or `token_weights`; a name has lowercase letters and `_` only. Two
    heads `query` and `document` are for queries and for the texts that these are compared with."""

    @property
    def parts(self) -> Mapping[str, HeadKind]:
        return self.heads

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        yield Step(
            self.heading,
            "",
            tuple(
                f"{name}: {head.heading[0].lower()}{head.heading[1:]}" for name, head in self.heads.items()
            ),
        )
        results = (
            [step for step in head.steps(context) if isinstance(step, Output)] for head in self.heads.values()
        )
        yield Output("Outputs", ", ".join(outputs[-1].shape for outputs in results))

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if len(self.heads) < 2:
            yield Fault(
                ("heads",), "must be at least two", list(self.heads), "Add a head, or use its kind alone."
            )
        outputs: dict[str, str] = {}
        for name, head in self.heads.items():
            path = ("heads", name)
            if not re.fullmatch("[a-z][a-z_]*", name):
                rule = (
                    "must have a name of lowercase letters and _, which becomes part of the names of weights"
                )
                yield Fault(path, rule, name, "Rename it, as in dense or sparse.")
            if head.kind not in _RETRIEVAL:
                yield Fault(
                    (*path, "kind"),
                    "must be a head for retrieval",
                    head.kind,
                    f"Use {', '.join(_RETRIEVAL)}.",
                )
                continue
            if head.token_to_find is not None:
                yield Fault((*path, "pooling"), "must not look for a token beside other heads", head.token_to_find,
                            "Use first, last or mean.")  # fmt: skip
            other = outputs.setdefault(head.vector_output, name)
            if other != name:
                yield Fault(path, f"must not give {head.vector_output}, which {other} gives", head.kind,
                            "Remove one, or give a pooled head another output.")  # fmt: skip
            yield from (fault.under(*path) for fault in head.faults(context))

        if set(self.heads) == {"query", "document"}:
            yield from _unlike_faults(self.heads["query"], self.heads["document"], context.d_model)

    def embedding_faults(self, embedding: EmbeddingKind, width: int) -> Iterable[Fault]:
        for name, head in self.heads.items():
            yield from (fault.under("heads", name) for fault in head.embedding_faults(embedding, width))

    def why_insensitive(self, width: int) -> str:
        return next(filter(None, (head.why_insensitive(width) for head in self.heads.values())), "")


def _unlike_faults(query: HeadKind, document: HeadKind, d_model: int) -> Iterable[Fault]:
    """The violated rules of heads for queries and for documents, whose outputs are compared."""
    for rule, ours, theirs in (
        ("kind", query.kind, document.kind),
        ("width", query.vector_width(d_model), document.vector_width(d_model)),
    ):
        if ours != theirs:
            yield Fault(("heads", "query"), f"must give vectors of the {rule} of document, which is {theirs}", ours,
                        f"Use the same {rule} in both, or give the heads other names.")  # fmt: skip
            return
