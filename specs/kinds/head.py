"""Heads: outputs computed from the last hidden state."""

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

from specs.base.base import (
    Component,
    Dropout,
    Fault,
    OmitDefault,
    PositiveFloat,
    RuleContext,
    Slot,
    Width,
)
from specs.base.descriptions import ValueDescriptions
from specs.base.errors import MISSING
from specs.base.registry import interface, register
from specs.base.roles import Role
from specs.base.words import TIMES, WIDTHS, Output, PartContext, Step, number_text, product
from specs.kinds.activation import ACTIVATION_TITLES, Activation
from specs.kinds.embedding import EmbeddingKind
from specs.kinds.norm import Norm, norm_steps
from specs.kinds.pooling import AttentionPooling, AtToken, Pooling, pooling_words


@interface("head")
class HeadKind(Component):
    """Interface of all kinds of head.

    ``meets`` says that it compares the vectors of the two stacks of a dual encoder, and ``scores_vocabulary`` that its outputs are
    scores of every token of the vocabulary, and ``predicts_next`` that these are scores of the next token, so that the model can
    generate.  ``compared_by`` is how the quality of an export is judged: by its outputs as they are, by ``logits`` as scores of
    classes or tokens, by the scores of pairs of a text and an image, by the directions of the vectors of ``vector_output``, or by the
    late interaction of its vectors, one per token.  ``stored_as`` is the kind of head whose tensors a checkpoint holds, if another.
    ``embeds_texts`` says that modules of sentence-transformers can describe it, whose settings then apply to texts.
    """

    meets: ClassVar[bool] = False
    scores_vocabulary: ClassVar[bool] = False
    predicts_next: ClassVar[bool] = False
    compared_by: ClassVar[Literal["values", "scores", "pairs", "vectors", "late interaction"]] = "values"
    stored_as: ClassVar[str | None] = None
    embeds_texts: ClassVar[bool] = False

    @property
    def stored_kind(self) -> str:
        """The kind of head whose tensors a checkpoint holds."""
        return self.stored_as or self.kind

    @property
    def scores_embeddings(self) -> bool:
        """Whether it compares vectors of the width of the embedding, instead of d_model, with the vocabulary."""
        return False

    @property
    def transforms_to_embedding(self) -> bool:
        """Whether its dense layer and norm have the width of the embedding instead of d_model."""
        return False

    @property
    def detects(self) -> bool:
        """Whether it compares texts with boxes in images, where it meets the stacks of a dual encoder."""
        return False

    @property
    def gives_boxes(self) -> bool:
        """Whether it finds boxes in the images of a dual encoder."""
        return False

    @property
    def vector_output(self) -> str:
        """The output whose vectors are compared."""
        return "last_hidden_state"

    @property
    def sequence_output(self) -> str | None:
        """The output that holds one vector per sequence, or None."""
        return None

    @property
    def token_to_find(self) -> int | None:
        """The id of the token that selects the vector of a sequence, or None."""
        return None

    def vector_width(self, d_model: int) -> int | None:
        """The width of the vector that a dual encoder compares; None if the head gives none."""
        return None

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        """The steps from the last hidden state to the outputs, in the order of the forward."""
        yield Step(self.heading, "", tuple(self.details(context)))
        yield Output("Outputs")

    def embedding_faults(self, embedding: EmbeddingKind, width: int) -> Iterable[Fault]:
        """The violated rules between this head and the embedding of its stack, whose stream has a width."""
        return ()


Head = Annotated[HeadKind, Slot("head")]


def dense_layer_faults(head: "TransformingHead | MaskedScores") -> Iterable[Fault]:
    """The settings of a dense layer in a head without one."""
    if head.activation is None and not head.dense_bias:
        yield Fault(
            ("dense_bias",),
            "belongs to a dense layer, which activation adds",
            False,
            "Add activation: (identity for none), or remove dense_bias.",
        )


def dense_width_faults(activation: Activation | None, width: int | None) -> Iterable[Fault]:
    """The width of a dense layer in a head without one."""
    if activation is None and width is not None:
        yield Fault(
            ("dense_width",),
            "belongs to a dense layer, which activation adds",
            width,
            "Add activation: (identity for none), or remove dense_width.",
        )


def dense_steps(head: "TransformingHead | MaskedScores") -> Iterator[Step]:
    """The dense layer, its activation and norm, each if present."""
    if head.activation is not None:
        yield Step("Dense", "dense", (WIDTHS, ACTIVATION_TITLES[head.activation]))
    yield from norm_steps(head.norm)


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


class TransformingHead(HeadKind):
    """A head with an optional dense layer and norm before the output layer."""

    activation: Activation | None = None
    """Activation of a dense layer before the output layer (BERT: `tanh`). Default: no dense layer."""
    dense_bias: Annotated[bool, OmitDefault()] = True
    """Whether that dense layer adds a bias (ModernBERT: false)."""
    norm: Norm | None = None
    """Norm before the output layer, after the dense layer if there is one (ModernBERT, CLIP). Default: none."""

    def why_insensitive(self, width: int) -> str:
        return "" if self.norm is None else self.norm.why_insensitive(width)

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        return dense_layer_faults(self)


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
    norm: Norm | None = None
    """Norm between the dense layer and the scores, which requires one. Default: none."""
    bias: bool = True
    """Whether the scores add a trained bias."""
    narrowed_by: ClassVar[str] = "activation: gelu"

    @property
    def scores_embeddings(self) -> bool:
        return self.activation is not None

    @property
    def transforms_to_embedding(self) -> bool:
        return self.activation is not None

    def why_insensitive(self, width: int) -> str:
        return "" if self.norm is None else self.norm.why_insensitive(width)

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from dense_layer_faults(self)
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

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        yield from dense_steps(self)
        yield from self.score_steps(context, "Masked-language-model head")


@register("head")
class Pooler(HeadKind):
    """BERT's pooler: `last_hidden_state`, and as `pooler_output` its first token through a dense layer."""

    kind: Literal["pooler"] = "pooler"
    compared_by: ClassVar[Literal["vectors"]] = "vectors"
    activation: Activation = "tanh"
    """Activation of the dense layer."""

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        yield Output("Hidden states", product("B", context.length, context.width))
        yield Step("Pooler", "dense", ("first token", WIDTHS, ACTIVATION_TITLES[self.activation]))
        yield Output("Pooled output", product("B", context.width))


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

    def vector_steps(self) -> Iterator[Step]:
        """One transformed vector per sequence."""
        trained = "pooling" if isinstance(self.pooling, AttentionPooling) else None
        pooling = Step("Pooling", trained, (pooling_words(self.pooling),))
        dense = list(dense_steps(self))
        yield from [*dense, pooling] if self.transform == "tokens" else [pooling, *dense]

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
        if token is not None and token >= (context.vocab_size or 0):
            yield Fault(
                ("pooling", "token"),
                f"must be below vocab_size, which is {context.vocab_size or 'not set'}",
                token,
                f"Use 0 to {context.vocab_size - 1}." if context.vocab_size else "Use first, last or mean.",
            )


@register("head")
class Classification(SequenceHead):
    """Scores of classes for the whole sequence: pooling, transform, dropout, classifier. Gives `logits`, batch x labels."""

    kind: Literal["classification"] = "classification"
    compared_by: ClassVar[Literal["scores"]] = "scores"
    labels: Width
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
    labels: Width
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
    embeds_texts: ClassVar[bool] = True
    compared_by: ClassVar[Literal["vectors"]] = "vectors"
    projection: Width | None = None
    """Width of a projection of the vector, without bias (CLIP). Default: no projection."""
    normalize: bool = False
    """Whether the vector is divided by its Euclidean norm (sentence embeddings)."""
    output: Annotated[
        Literal["pooler_output", "text_embeds", "image_embeds", "sentence_embedding"],
        ValueDescriptions(
            {
                "pooler_output": "As Hugging Face models name it.",
                "text_embeds": "As CLIP's text model with projection names it.",
                "image_embeds": "As CLIP's vision model with projection names it.",
                "sentence_embedding": "As sentence-transformers names it.",
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


@register("head")
class NoHead(HeadKind):
    """The `last_hidden_state` alone, batch x tokens x d_model."""

    kind: Literal["none"] = "none"
    compared_by: ClassVar[Literal["vectors"]] = "vectors"

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        yield Output("Hidden states", product("B", context.length, context.width))
