"""Heads: what a model computes from its last hidden state."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from specs.activation import Activation
from specs.base import Component, Fault, Frame, PositiveFloat, Probability, Slot, Spec, Unsaid, Width
from specs.descriptions import ValueDescriptions
from specs.norm import Norm
from specs.registry import register

Head = Annotated[Component, Slot("head")]


class AtToken(Spec):
    """The first token with a certain id, or the last token of a sequence without one (CLIP: the end token)."""

    token: Annotated[int, Field(ge=0)]
    """Token id to look for, below `vocab_size`."""


PoolingName = Annotated[
    Literal["first", "last", "mean", "max", "weighted_mean", "mean_sqrt_length"],
    ValueDescriptions(
        {
            "first": "The first token (BERT's `[CLS]`); not in decoders, whose first token sees no other.",
            "last": "The last token that is not padding (decoders).",
            "mean": "The mean over all tokens.",
            "max": "The largest value of each feature over all tokens.",
            "weighted_mean": "The mean over all tokens, the n-th weighted by n (SGPT).",
            "mean_sqrt_length": "The sum over all tokens, divided by the square root of their number.",
        }
    ),
]

Pooling = Annotated[
    Annotated[PoolingName, Tag("name")] | Annotated[AtToken, Tag("mapping")],
    Discriminator(lambda pooling: "mapping" if isinstance(pooling, dict | AtToken) else "name"),
]
"""The vector that stands for a sequence: its first or last token's, that of a certain token, or one made of all tokens."""


class VocabularyHead(Component):
    """A head that scores every token of the vocabulary."""

    tie_embeddings: bool = True
    """Whether the scores use the matrix of the token embedding, which is then stored and counted once."""
    bias: bool | Literal["fixed"] = False
    """Whether scores add a trained bias; `fixed` adds a stored vector that is neither trained nor counted (BART)."""

    @property
    def scores_embeddings(self) -> bool:
        """Whether what is scored is as wide as the embedding, rather than d_model."""
        return False


@register("head")
class LanguageModeling(VocabularyHead):
    """Scores of the next token: `logits`, batch x tokens x vocabulary."""

    kind: Literal["language_modeling"] = "language_modeling"
    scale: PositiveFloat | Literal["inverse_sqrt_d_model"] | None = None
    """Factor on the hidden state: a number, or `inverse_sqrt_d_model` (T5). Default: 1."""
    projection: Annotated[bool, Unsaid()] = False
    """Whether a matrix without a bias takes the hidden state to the width of the embedding first (OPT-350m)."""
    softcap: PositiveFloat | None = None
    """Bound c on the scores, which become `c * tanh(score / c)` (Gemma 2). Default: unbounded."""

    @property
    def scores_embeddings(self) -> bool:
        return self.projection


class TransformingHead(Component):
    """A head that may transform a vector before it reads it."""

    activation: Activation | None = None
    """Activation of a dense layer before the output layer (BERT: `tanh`). Default: no dense layer."""
    dense_bias: Annotated[bool, Unsaid()] = True
    """Whether that dense layer adds a bias (ModernBERT: false)."""
    norm: Norm | None = None
    """Norm after the dense layer (ModernBERT). Default: none."""

    def faults(self, frame: Frame) -> Iterable[Fault]:
        if self.activation is None and self.norm is not None:
            yield Fault(
                ("norm",),
                "follows a dense layer, which activation puts there",
                self.norm.kind,
                "add activation: (identity for none), or remove norm",
            )
        if self.activation is None and not self.dense_bias:
            yield Fault(
                ("dense_bias",),
                "is that of a dense layer, which activation puts there",
                False,
                "add activation: (identity for none), or remove dense_bias",
            )


@register("head")
class MaskedLanguageModeling(VocabularyHead):
    """Scores of masked tokens: dense layer, activation, norm, vocabulary (BERT). Gives `logits`, batch x tokens x vocabulary."""

    kind: Literal["masked_language_modeling"] = "masked_language_modeling"
    activation: Activation = "gelu"
    """Activation of the dense layer, whose output is as wide as the token table (ALBERT, ELECTRA)."""
    dense_bias: Annotated[bool, Unsaid()] = True
    """Whether the dense layer adds a bias (ModernBERT: false)."""
    norm: Norm
    """Norm between the dense layer and the scores."""
    bias: bool = True
    """Whether the scores add a trained bias."""

    @property
    def scores_embeddings(self) -> bool:
        return True


@register("head")
class Pooler(Component):
    """BERT's pooler: `last_hidden_state`, and as `pooler_output` its first token through a dense layer."""

    kind: Literal["pooler"] = "pooler"
    activation: Activation = "tanh"
    """Activation of the dense layer."""


class SequenceHead(TransformingHead):
    """A head that reads one vector for the whole sequence."""

    pooling: Pooling = "first"
    """How one vector is made of the tokens; `{token: ID}` takes the first token with that id."""

    def faults(self, frame: Frame) -> Iterable[Fault]:
        yield from super().faults(frame)
        if frame.causal and self.pooling == "first":
            yield Fault(
                ("pooling",),
                "must not be first in a decoder, whose first token sees no other",
                self.pooling,
                "last or mean would work",
            )
        if isinstance(self.pooling, AtToken) and self.pooling.token >= (frame.vocab_size or 0):
            yield Fault(
                ("pooling", "token"),
                f"must be a token of the vocabulary, which has {frame.vocab_size or 'none'}",
                self.pooling.token,
                f"0 to {frame.vocab_size - 1} would work"
                if frame.vocab_size
                else "first, last or mean would work",
            )


def sought_token(head: Component) -> int | None:
    """The token at which a head reads a sequence, where it seeks one."""
    if isinstance(head, SequenceHead) and isinstance(head.pooling, AtToken):
        return head.pooling.token
    return None


@register("head")
class Classification(SequenceHead):
    """Scores of classes for the whole sequence: pooling, transform, dropout, classifier. Gives `logits`, batch x labels."""

    kind: Literal["classification"] = "classification"
    labels: Width
    """Number of classes."""
    bias: bool = True
    """Whether the classifier adds a bias."""
    dropout: Probability = 0.0
    """Dropout probability before the classifier during training."""


@register("head")
class Pooled(SequenceHead):
    """The `last_hidden_state`, and one vector per sequence: pooling, transform, projection, normalisation (CLIP text)."""

    kind: Literal["pooled"] = "pooled"
    projection: Width | None = None
    """Width to which a matrix without a bias takes the vector (CLIP). Default: no projection."""
    normalize: bool = False
    """Whether the vector is divided by its Euclidean norm (sentence embeddings)."""
    output: Annotated[
        Literal["pooler_output", "text_embeds", "sentence_embedding"],
        ValueDescriptions(
            {
                "pooler_output": "As Hugging Face models name it.",
                "text_embeds": "As CLIP's text model with projection names it.",
                "sentence_embedding": "As sentence-transformers names it.",
            }
        ),
    ] = "pooler_output"
    """Name of the output that holds the vector."""


@register("head")
class TokenClassification(TransformingHead):
    """Scores of classes for each token: transform, dropout, classifier. Gives `logits`, batch x tokens x labels."""

    kind: Literal["token_classification"] = "token_classification"
    labels: Width
    """Number of classes."""
    bias: bool = True
    """Whether the classifier adds a bias."""
    dropout: Probability = 0.0
    """Dropout probability before the classifier during training."""


@register("head")
class QuestionAnswering(TransformingHead):
    """Where an answer starts and ends: `start_logits` and `end_logits`, batch x tokens, after transform and dropout."""

    kind: Literal["question_answering"] = "question_answering"
    bias: bool = True
    """Whether the output layer adds a bias."""
    dropout: Probability = 0.0
    """Dropout probability before the output layer during training."""


@register("head")
class ReplacedTokenDetection(TransformingHead):
    """Which tokens were replaced: `logits`, batch x tokens, after transform (ELECTRA's discriminator)."""

    kind: Literal["replaced_token_detection"] = "replaced_token_detection"
    bias: bool = True
    """Whether the output layer adds a bias."""


@register("head")
class NoHead(Component):
    """The `last_hidden_state` alone, batch x tokens x d_model."""

    kind: Literal["none"] = "none"
