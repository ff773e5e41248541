"""Heads: what a model computes from its last hidden state."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from specs.activation import Activation
from specs.base import Component, Fault, Frame, PositiveFloat, Probability, Slot, Spec, Unsaid, Width
from specs.norm import Norm
from specs.registry import register

Head = Annotated[Component, Slot("head")]


class AtToken(Spec):
    """At the first token with this id; in a sequence that has none, at its last token (CLIP: its end token)."""

    token: Annotated[int, Field(ge=0)]


PoolingName = Literal["first", "last", "mean", "max", "weighted_mean", "mean_sqrt_length"]

Pooling = Annotated[
    Annotated[PoolingName, Tag("name")] | Annotated[AtToken, Tag("mapping")],
    Discriminator(lambda pooling: "mapping" if isinstance(pooling, dict | AtToken) else "name"),
]
"""The vector that stands for a sequence: its first or last token's, that of a certain token, or one made of all tokens.

``max`` takes the largest value of each feature, ``weighted_mean`` weights the n-th token by n (SGPT), and
``mean_sqrt_length`` divides the sum by the square root of the number of tokens.
"""


class VocabularyHead(Component):
    """A head that scores every token of the vocabulary; tied, it shares the token embedding's matrix.

    ``bias: fixed`` adds a stored vector that is neither trained nor counted (BART).
    """

    tie_embeddings: bool = True
    bias: bool | Literal["fixed"] = False

    @property
    def scores_embeddings(self) -> bool:
        """Whether what is scored is as wide as the embedding, rather than d_model."""
        return False


@register("head")
class LanguageModeling(VocabularyHead):
    """Scores of the next token.

    ``scale`` multiplies the hidden state first (T5: inverse_sqrt_d_model), ``projection`` takes it to the width
    of the embedding, without a bias (OPT-350m); ``softcap: c`` bounds the scores: c * tanh(scores / c) (Gemma 2).
    """

    kind: Literal["language_modeling"] = "language_modeling"
    scale: PositiveFloat | Literal["inverse_sqrt_d_model"] | None = None
    projection: Annotated[bool, Unsaid()] = False
    softcap: PositiveFloat | None = None

    @property
    def scores_embeddings(self) -> bool:
        return self.projection


class TransformingHead(Component):
    """A head that may transform a vector before it reads it.

    ``activation`` puts a dense layer with that activation first (BERT: tanh), with a bias unless ``dense_bias``
    is false, and ``norm`` normalises what comes out (ModernBERT).
    """

    activation: Activation | None = None
    dense_bias: Annotated[bool, Unsaid()] = True
    norm: Norm | None = None

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
    """Scores of the masked token: dense, activation, norm, vocabulary (BERT).

    The dense layer ends at the width of the embedding (ALBERT, ELECTRA); ``dense_bias: false`` leaves out its
    bias (ModernBERT).
    """

    kind: Literal["masked_language_modeling"] = "masked_language_modeling"
    activation: Activation = "gelu"
    dense_bias: Annotated[bool, Unsaid()] = True
    norm: Norm
    bias: bool = True

    @property
    def scores_embeddings(self) -> bool:
        return True


@register("head")
class Pooler(Component):
    """The last hidden state, and the first token through a dense layer and an activation (BERT)."""

    kind: Literal["pooler"] = "pooler"
    activation: Activation = "tanh"


class SequenceHead(TransformingHead):
    """A head that reads one vector for the whole sequence.

    ``pooling`` takes the first token (encoders), the last (decoders), the mean or another summary of all tokens, or
    ``{token: id}``: the first token with that id.
    """

    pooling: Pooling = "first"

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
    """Scores of ``labels`` classes for the whole sequence: pooling, transform, dropout, classifier."""

    kind: Literal["classification"] = "classification"
    labels: Width
    bias: bool = True
    dropout: Probability = 0.0


@register("head")
class Pooled(SequenceHead):
    """The last hidden state, and one vector for the sequence (CLIP text, sentence embeddings).

    After pooling and transform, ``projection`` takes the vector to another width, without a bias (CLIP), and
    ``normalize`` divides it by its length.  ``output`` is the name that clients look for.
    """

    kind: Literal["pooled"] = "pooled"
    projection: Width | None = None
    normalize: bool = False
    output: Literal["pooler_output", "text_embeds", "sentence_embedding"] = "pooler_output"


@register("head")
class TokenClassification(TransformingHead):
    """Scores of ``labels`` classes for each token: transform, dropout, classifier."""

    kind: Literal["token_classification"] = "token_classification"
    labels: Width
    bias: bool = True
    dropout: Probability = 0.0


@register("head")
class QuestionAnswering(TransformingHead):
    """For each token, how well an answer would start and end there: transform, dropout, two scores."""

    kind: Literal["question_answering"] = "question_answering"
    bias: bool = True
    dropout: Probability = 0.0


@register("head")
class ReplacedTokenDetection(TransformingHead):
    """For each token one score, of whether it stands in another's place: transform, score (ELECTRA's discriminator)."""

    kind: Literal["replaced_token_detection"] = "replaced_token_detection"
    bias: bool = True


@register("head")
class NoHead(Component):
    """The last hidden state alone."""

    kind: Literal["none"] = "none"
