"""Heads that score every token of the vocabulary."""

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

from specs.base.base import (
    Fault,
    OmitDefault,
    PositiveFloat,
    RuleContext,
    Width,
)
from specs.base.errors import MISSING
from specs.base.registry import register
from specs.base.roles import Role
from specs.base.words import TIMES, WIDTHS, Output, PartContext, Step, number_text, product
from specs.kinds.activation import Activation
from specs.kinds.embedding import EmbeddingKind
from specs.kinds.head import HeadKind, PrintedAs
from specs.kinds.norm import Norm
from specs.kinds.transforming_head import (
    TransformingHead,
    dense_layer_faults,
    dense_steps,
    dense_width_faults,
)


class VocabularyHead(HeadKind):
    """A head that scores every token of the vocabulary."""

    tie_embeddings: bool = True
    """Whether the scores use the matrix of the token embedding, which is then stored and counted once."""
    bias: bool | Literal["fixed"] = False
    """Whether scores add a trained bias; `fixed` adds a stored vector that is neither trained nor counted (BART)."""
    narrowed_by: ClassVar[str]
    """The setting that gives the scored vectors the width of the embedding."""

    scores_vocabulary: ClassVar[bool] = True
    compared_by: ClassVar[Literal["scores"]] = "scores"

    def score_steps(self, context: PartContext, title: str, *details: str) -> Iterator[Step | Output]:
        """The matrix of the vocabulary, and the scores."""
        assert context.vocab_size is not None
        yield Step(title, "vocabulary", (WIDTHS, *details))
        yield Output("Logits", product("B", context.length, context.vocab_size))

    def embedding_faults(self, embedding: EmbeddingKind, width: int) -> Iterable[Fault]:
        if not embedding.takes_tokens:
            yield Fault(
                ("kind",),
                "requires a vocabulary, but the model takes no tokens",
                self.kind,
                "Use classification or none.",
            )
            return
        table = embedding.table_width(width)
        if self.tie_embeddings and not self.scores_embeddings and table != width:
            yield Fault(
                ("tie_embeddings",),
                f"needs an embedding as wide as d_model, which is {width}; embedding.width is {table}",
                True,
                f"Set {self.narrowed_by}, tie_embeddings: false, or embedding.width: {width}.",
            )


@register("head")
class LanguageModeling(VocabularyHead, TransformingHead):
    """Scores of the next token: `logits`, batch x tokens x vocabulary."""

    kind: Literal["language_modeling"] = "language_modeling"
    scale: PositiveFloat | Literal["inverse_sqrt_d_model"] | None = None
    """Factor on the hidden state: a number, or `inverse_sqrt_d_model` (T5). Default: 1."""
    projection: Annotated[bool, OmitDefault()] = False
    """Whether a projection without bias to the width of the embedding comes first (OPT-350m)."""
    softcap: Annotated[PositiveFloat | None, Role.SOFTCAP] = None
    """Bound c on the scores, which become `c * tanh(score / c)` (Gemma 2). Default: unbounded."""
    narrowed_by: ClassVar[str] = "projection: true"
    predicts_next: ClassVar[bool] = True

    @property
    def scores_embeddings(self) -> bool:
        return self.projection

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        yield from dense_steps(self)
        if self.scale is not None:
            factor = f"1/√{context.width:,}" if isinstance(self.scale, str) else number_text(self.scale)
            yield Step(f"{TIMES} {factor}", role="other")
        if self.projection:
            yield Step("Projection", "projection", (WIDTHS,))
        fixed = ["fixed bias"] if self.bias == "fixed" else []
        cap = [] if self.softcap is None else [f"softcap {number_text(self.softcap)}"]
        yield from self.score_steps(context, "Language-model head", *fixed, *cap)


class MaskedScores(VocabularyHead):
    """A head that scores every token of the vocabulary at every place: dense layer, activation, norm, vocabulary (BERT)."""

    activation: Activation | None = "gelu"
    """Activation of the dense layer, whose output is as wide as the token table (ALBERT, ELECTRA); null for scores of the
    last hidden state itself, without dense layer and norm (EuroBERT)."""
    dense_bias: Annotated[bool, OmitDefault()] = True
    """Whether the dense layer adds a bias (ModernBERT: false)."""
    dense_width: Annotated[Width | None, OmitDefault()] = None
    """Width of the dense layer (RemBERT: 1664, MobileBERT: 512). Scores with the token table as their matrix have one of their own
    for what is wider than the table. Default: the width of the token table."""
    norm: Norm | None = None
    """Norm between the dense layer and the scores, which requires one. Default: none."""
    bias: bool = True
    """Whether the scores add a trained bias."""
    narrowed_by: ClassVar[str] = "activation: gelu"

    def embedding_faults(self, embedding: EmbeddingKind, width: int) -> Iterable[Fault]:
        yield from super().embedding_faults(embedding, width)
        table = embedding.table_width(width)
        if self.tie_embeddings and self.dense_width is not None and self.dense_width <= table:
            yield Fault(
                ("dense_width",),
                f"must exceed the width of the token table, which is {table}, where scores use it",
                self.dense_width,
                "Set tie_embeddings: false, or remove dense_width.",
            )

    @property
    def scores_embeddings(self) -> bool:
        return self.activation is not None

    @property
    def transforms_to_embedding(self) -> bool:
        return self.activation is not None

    def why_insensitive(self, width: int) -> str:
        return "" if self.norm is None else self.norm.why_insensitive(self.dense_width or width)

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from dense_layer_faults(self)
        yield from dense_width_faults(self.activation, self.dense_width)
        if self.activation is None and self.norm is not None:
            yield Fault(
                ("norm",),
                "requires a dense layer, which activation adds",
                self.norm.kind,
                "Add activation: (identity for none), or remove norm.",
            )
        if self.activation is not None and self.norm is None:
            yield Fault(
                ("norm",),
                "is required after the dense layer",
                MISSING,
                "Add norm: {kind: layer_norm}, or remove the dense layer with activation: null.",
            )


@register("head")
class MaskedLanguageModeling(MaskedScores):
    """Scores of masked tokens: dense layer, activation, norm, vocabulary (BERT). Gives `logits`, batch x tokens x vocabulary."""

    kind: Literal["masked_language_modeling"] = "masked_language_modeling"
    printed_as: ClassVar[PrintedAs] = "masks"

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        yield from dense_steps(self)
        yield from self.score_steps(context, "Masked-language-model head")
