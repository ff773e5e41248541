"""Heads of whole sequences: scores of classes, and vectors."""

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal, Self

from specs.base.base import (
    Dropout,
    Fault,
    OmitDefault,
    RuleContext,
    Width,
)
from specs.base.descriptions import ValueDescriptions
from specs.base.registry import register
from specs.base.roles import Role
from specs.base.words import WIDTHS, Output, PartContext, Step, product
from specs.kinds.embedding import EmbeddingKind
from specs.kinds.head import HeadKind, PrintedAs
from specs.kinds.pooling import AttentionPooling, AtToken, Pooling, pooling_words
from specs.kinds.transforming_head import TransformingHead, dense_steps, dense_width_faults


class SequenceHead(TransformingHead):
    """A head with one vector for the whole sequence as input."""

    dense_width: Width | None = None
    """Width of the dense layer (wav2vec 2.0: 256, EmbeddingGemma: 3072). Default: d_model."""
    pooling: Pooling = "first"
    """Reduction of the tokens to one vector; `{token: ID}` selects the first token with that id."""
    transform: Annotated[
        Literal["vector", "tokens"],
        ValueDescriptions(
            {
                "vector": "The pooled vector (BERT).",
                "tokens": "Every token, before pooling (EuroBERT).",
            }
        ),
        OmitDefault(),
    ] = "vector"
    """Input of the dense layer and norm."""

    @property
    def token_to_find(self) -> int | None:
        token = self.pooling.token if isinstance(self.pooling, AtToken) else None
        return token if isinstance(token, int) else None

    @property
    def pools_last(self) -> bool:
        return self.pooling == "last"

    def seeking(self, token: int) -> Self:
        return self.model_copy(update={"pooling": AtToken(token=token)})

    def vector_steps(self) -> Iterator[Step]:
        """One transformed vector per sequence."""
        trained = "pooling" if isinstance(self.pooling, AttentionPooling) else None
        pooling = Step("Pooling", trained, (pooling_words(self.pooling),))
        dense = list(dense_steps(self))
        yield from [*dense, pooling] if self.transform == "tokens" else [pooling, *dense]

    def embedding_faults(self, embedding: EmbeddingKind, width: int) -> Iterable[Fault]:
        if self.token_to_find is not None and not embedding.takes_tokens:
            yield Fault(
                ("pooling", "token"),
                "requires an embedding of tokens",
                self.token_to_find,
                "Use first, last or mean.",
            )
        if self.pooling == "first_two" and not embedding.has_distillation_token:
            yield Fault(
                ("pooling",),
                "requires an embedding with a class token and a distillation token",
                self.pooling,
                "Use first or mean.",
            )

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from super().faults(context)
        yield from dense_width_faults(self.activation, self.dense_width)
        if self.activation is None and self.norm is None and self.transform == "tokens":
            yield Fault(
                ("transform",),
                "belongs to a dense layer, which activation adds",
                self.transform,
                "Add activation: (identity for none), or remove transform.",
            )
        if context.causal and self.pooling == "first":
            yield Fault(
                ("pooling",),
                "must not be first in a decoder, whose first token sees no other",
                self.pooling,
                "Use last or mean.",
            )
        if self.pooling == "patches" and not context.patches:
            yield Fault(
                ("pooling",),
                "requires an embedding of patches",
                self.pooling,
                "Use mean.",
            )
        if isinstance(self.pooling, AttentionPooling):
            yield from (fault.under("pooling") for fault in self.pooling.faults(context))
        token = self.token_to_find
        if token is not None and context.vocab_size is not None and token >= context.vocab_size:
            yield Fault(
                ("pooling", "token"),
                f"must be below vocab_size, which is {context.vocab_size}",
                token,
                f"Use 0 to {context.vocab_size - 1}.",
            )


@register("head")
class Classification(SequenceHead):
    """Scores of classes for the whole sequence: pooling, transform, dropout, classifier. Gives `logits`, batch x labels."""

    kind: Literal["classification"] = "classification"
    printed_as: ClassVar[PrintedAs] = "classes"
    compared_by: ClassVar[Literal["scores"]] = "scores"
    labels: Annotated[Width, Role.LABELS]
    """Number of classes."""
    bias: bool = True
    """Whether the classifier adds a bias."""
    dropout: Dropout = 0.0
    """Dropout probability before the classifier during training."""

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        yield from self.vector_steps()
        yield Step("Classifier", "labels", (WIDTHS,))
        yield Output("Logits", product("B", self.labels))


@register("head")
class DistilledClassification(HeadKind):
    """Scores of classes from the class token and the distillation token of images, each through a classifier of its own (DeiT:
    Touvron et al., 2020). Gives `cls_logits`, `distillation_logits`, and their mean `logits`, batch x labels."""

    kind: Literal["distilled_classification"] = "distilled_classification"
    printed_as: ClassVar[PrintedAs] = "classes"
    labels: Annotated[Width, Role.LABELS]
    """Number of classes."""

    def embedding_faults(self, embedding: EmbeddingKind, width: int) -> Iterable[Fault]:
        if not embedding.has_distillation_token:
            yield Fault(
                ("kind",),
                "requires patches with a distillation token, which it reads",
                self.kind,
                "Add distillation_token: true to the embedding, or use classification.",
            )


@register("head")
class Pooled(SequenceHead):
    """The `last_hidden_state`, and one vector per sequence: pooling, transform, projection, normalisation (CLIP text)."""

    kind: Literal["pooled"] = "pooled"
    printed_as: ClassVar[PrintedAs] = "vectors"
    embeds_texts: ClassVar[bool] = True
    compared_by: ClassVar[Literal["vectors"]] = "vectors"
    projection: Width | None = None
    """Width of a projection of the vector, without bias (CLIP). Default: no projection."""
    normalize: bool = False
    """Whether the vector is divided by its Euclidean norm (sentence embeddings)."""
    output: Annotated[
        Literal["pooler_output", "text_embeds", "image_embeds", "sentence_embedding", "query_embedding"],
        ValueDescriptions(
            {
                "pooler_output": "As Hugging Face models name it.",
                "text_embeds": "As CLIP's text model with projection names it.",
                "image_embeds": "As CLIP's vision model with projection names it.",
                "sentence_embedding": "As sentence-transformers names it.",
                "query_embedding": "The vector of a query, where texts have another head.",
            }
        ),
    ] = "pooler_output"
    """Name of the output that holds the vector."""

    @property
    def sequence_output(self) -> str:
        return self.output

    @property
    def vector_output(self) -> str:
        return self.output

    def vector_width(self, d_model: int) -> int:
        return self.projection or self.dense_width or d_model

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        yield Output("Hidden states", product("B", context.length, context.width))
        yield from self.vector_steps()
        if self.projection is not None:
            yield Step("Projection", "projection", (WIDTHS,))
        if self.normalize:
            yield Step("Divided by its length")
        yield Output("Sequence vector", product("B", self.vector_width(context.width)))

    def why_insensitive(self, width: int) -> str:
        single = self.normalize and self.vector_width(width) == 1
        return super().why_insensitive(width) or (
            "a unit vector of width 1 carries only a sign" if single else ""
        )
