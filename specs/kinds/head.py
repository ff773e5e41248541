"""Heads: outputs computed from the last hidden state."""

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from specs.base.base import (
    Component,
    Dropout,
    Fault,
    OmitDefault,
    PositiveFloat,
    RuleContext,
    Slot,
    Spec,
    Width,
)
from specs.base.descriptions import ValueDescriptions
from specs.base.errors import MISSING
from specs.base.registry import register
from specs.base.roles import Role
from specs.kinds.activation import Activation
from specs.kinds.attention import trained_query_faults
from specs.kinds.feed_forward import FeedForward
from specs.kinds.mixer import Attention
from specs.kinds.norm import Norm

Head = Annotated[Component, Slot("head")]


class AtToken(Spec):
    """The first token with a given id, or the first of all if the sequence has none (CLIP: the end token)."""

    token: Annotated[int, Field(ge=0)] | Literal["highest"]
    """Token id to look for, below `vocab_size`; `highest` for the highest id in the sequence (the first CLIP models, OWL-ViT)."""


TokenPooling = Literal["first", "last", "mean", "max", "weighted_mean", "mean_sqrt_length"]
"""The reductions of real tokens to one vector."""

PoolingName = Annotated[
    Literal[TokenPooling, "patches"],
    ValueDescriptions(
        {
            "first": "The first token (BERT's `[CLS]`); not for decoders, whose first token sees no other.",
            "last": "The last token that is not padding (decoders).",
            "mean": "The mean over all tokens.",
            "max": "The largest value of each feature over all tokens.",
            "weighted_mean": "The mean over all tokens, the n-th weighted by n (SGPT).",
            "mean_sqrt_length": "The sum over all tokens, divided by the square root of their number.",
            "patches": "The mean over the patches of an image, without the vectors before them (BEiT).",
        }
    ),
]


class AttentionPooling(Spec):
    """A trained query attends to all tokens; a feed-forward with a norm before it adds to the result (SigLIP)."""

    attention: Attention
    """Attention of the query: a kind with heads, without window or position."""
    norm: Norm
    """Norm before the feed-forward."""
    feed_forward: FeedForward
    """Feed-forward whose output is added."""

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        """The violated rules of its parts."""
        yield from (fault.under("attention") for fault in trained_query_faults(self.attention, context))
        for part in ("norm", "feed_forward"):
            yield from (fault.under(part) for fault in getattr(self, part).faults(context))


def _pooling_tag(pooling: object) -> str:
    if isinstance(pooling, AttentionPooling) or (isinstance(pooling, dict) and "token" not in pooling):
        return "attention"
    return "mapping" if isinstance(pooling, dict | AtToken) else "name"


Pooling = Annotated[
    Annotated[PoolingName, Tag("name")]
    | Annotated[AtToken, Tag("mapping")]
    | Annotated[AttentionPooling, Tag("attention")],
    Discriminator(_pooling_tag),
]
"""The vector for a sequence: that of the first, last or a given token, or a combination of all tokens."""


def dense_layer_faults(head: "TransformingHead | MaskedLanguageModeling") -> Iterable[Fault]:
    """The settings of a dense layer in a head without one."""
    if head.activation is None and not head.dense_bias:
        yield Fault(
            ("dense_bias",),
            "belongs to a dense layer, which activation adds",
            False,
            "Add activation: (identity for none), or remove dense_bias.",
        )


class VocabularyHead(Component):
    """A head that scores every token of the vocabulary."""

    tie_embeddings: bool = True
    """Whether the scores use the matrix of the token embedding, which is then stored and counted once."""
    bias: bool | Literal["fixed"] = False
    """Whether scores add a trained bias; `fixed` adds a stored vector that is neither trained nor counted (BART)."""
    narrowed_by: ClassVar[str]
    """The setting that gives the scored vectors the width of the embedding."""

    @property
    def scores_embeddings(self) -> bool:
        """Whether the scored vectors have the width of the embedding instead of d_model."""
        return False


class TransformingHead(Component):
    """A head with an optional dense layer and norm before the output layer."""

    activation: Activation | None = None
    """Activation of a dense layer before the output layer (BERT: `tanh`). Default: no dense layer."""
    dense_bias: Annotated[bool, OmitDefault()] = True
    """Whether that dense layer adds a bias (ModernBERT: false)."""
    norm: Norm | None = None
    """Norm before the output layer, after the dense layer if there is one (ModernBERT, CLIP). Default: none."""

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

    @property
    def scores_embeddings(self) -> bool:
        return self.projection


@register("head")
class MaskedLanguageModeling(VocabularyHead):
    """Scores of masked tokens: dense layer, activation, norm, vocabulary (BERT). Gives `logits`, batch x tokens x vocabulary."""

    kind: Literal["masked_language_modeling"] = "masked_language_modeling"
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
class Pooler(Component):
    """BERT's pooler: `last_hidden_state`, and as `pooler_output` its first token through a dense layer."""

    kind: Literal["pooler"] = "pooler"
    activation: Activation = "tanh"
    """Activation of the dense layer."""


class SequenceHead(TransformingHead):
    """A head with one vector for the whole sequence as input."""

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

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from super().faults(context)
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
        token = sought_token(self)
        if token is not None and token >= (context.vocab_size or 0):
            yield Fault(
                ("pooling", "token"),
                f"must be below vocab_size, which is {context.vocab_size or 'not set'}",
                token,
                f"Use 0 to {context.vocab_size - 1}." if context.vocab_size else "Use first, last or mean.",
            )


def sought_token(head: Component) -> int | None:
    """The id of the token that a head's pooling selects, if any."""
    token = (
        head.pooling.token if isinstance(head, SequenceHead) and isinstance(head.pooling, AtToken) else None
    )
    return token if isinstance(token, int) else None


@register("head")
class Classification(SequenceHead):
    """Scores of classes for the whole sequence: pooling, transform, dropout, classifier. Gives `logits`, batch x labels."""

    kind: Literal["classification"] = "classification"
    dense_width: Width | None = None
    """Width of the dense layer (wav2vec 2.0: 256). Default: d_model."""
    labels: Width
    """Number of classes."""
    bias: bool = True
    """Whether the classifier adds a bias."""
    dropout: Dropout = 0.0
    """Dropout probability before the classifier during training."""

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from super().faults(context)
        if self.activation is None and self.dense_width is not None:
            yield Fault(
                ("dense_width",),
                "belongs to a dense layer, which activation adds",
                self.dense_width,
                "Add activation: (identity for none), or remove dense_width.",
            )


@register("head")
class DistilledClassification(Component):
    """Scores of classes from the class token and the distillation token of images, each through a classifier of its own (DeiT:
    Touvron et al., 2020). Gives `cls_logits`, `distillation_logits`, and their mean `logits`, batch x labels."""

    kind: Literal["distilled_classification"] = "distilled_classification"
    labels: Width
    """Number of classes."""


@register("head")
class Pooled(SequenceHead):
    """The `last_hidden_state`, and one vector per sequence: pooling, transform, projection, normalisation (CLIP text)."""

    kind: Literal["pooled"] = "pooled"
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

    def vector_width(self, d_model: int) -> int:
        """The width of the vector."""
        return self.projection or d_model


@register("head")
class TokenClassification(TransformingHead):
    """Scores of classes for each token: transform, dropout, classifier. Gives `logits`, batch x tokens x labels."""

    kind: Literal["token_classification"] = "token_classification"
    labels: Width
    """Number of classes."""
    bias: bool = True
    """Whether the classifier adds a bias."""
    dropout: Dropout = 0.0
    """Dropout probability before the classifier during training."""


@register("head")
class QuestionAnswering(TransformingHead):
    """Scores of the start and end of an answer: transform, dropout, output layer. Gives `start_logits` and `end_logits`,
    batch x tokens."""

    kind: Literal["question_answering"] = "question_answering"
    bias: bool = True
    """Whether the output layer adds a bias."""
    dropout: Dropout = 0.0
    """Dropout probability before the output layer during training."""


@register("head")
class ReplacedTokenDetection(TransformingHead):
    """Scores of replaced tokens: transform, output layer (ELECTRA's discriminator). Gives `logits`, batch x tokens."""

    kind: Literal["replaced_token_detection"] = "replaced_token_detection"
    bias: bool = True
    """Whether the output layer adds a bias."""


@register("head")
class Contrastive(Component):
    """How well each text fits each image, from the vectors that the stacks of a dual encoder give (CLIP, SigLIP).

    Gives `text_embeds` and `image_embeds`, and their products times a trained factor, whose logarithm is stored:
    `logits_per_image`, images x texts, and `logits_per_text`, its transpose.
    """

    kind: Literal["contrastive"] = "contrastive"
    log_scale: float = 2.6592
    """Logarithm of the factor at random initialization (CLIP: 2.6592, for 1 / 0.07)."""
    bias: float | None = None
    """Value at random initialization of a trained number that is added (SigLIP: -10). Default: no such number."""


@register("head")
class CTC(Component):
    """Scores of labels for each vector, with a blank between labels (connectionist temporal classification: Graves et al.,
    2006). Gives `logits`, batch x vectors x labels."""

    kind: Literal["ctc"] = "ctc"
    labels: Width
    """Number of labels: characters or other tokens, and the blank."""
    blank: Annotated[int, Field(ge=0)] = 0
    """Id of the blank, below `labels`: the padding token of wav2vec2."""
    dropout: Dropout = 0.0
    """Dropout probability before the output layer during training."""

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if self.blank >= self.labels:
            yield Fault(
                ("blank",),
                f"must be below labels, which is {self.labels}",
                self.blank,
                f"Use 0 to {self.labels - 1}.",
            )


@register("head")
class NoHead(Component):
    """The `last_hidden_state` alone, batch x tokens x d_model."""

    kind: Literal["none"] = "none"
