"""Heads: what a model computes from its last hidden state."""

from collections.abc import Iterable
from typing import Annotated, Literal

from specs.activation import Activation
from specs.base import Component, Fault, Frame, PositiveFloat, Probability, Slot, Width
from specs.norm import Norm
from specs.registry import register

Head = Annotated[Component, Slot("head")]


class VocabularyHead(Component):
    """A head that scores every token of the vocabulary; tied, it shares the token embedding's matrix."""

    tie_embeddings: bool = True
    bias: bool = False


@register("head")
class LanguageModeling(VocabularyHead):
    """Scores of the next token; ``scale`` multiplies the hidden state first (T5: inverse_sqrt_d_model)."""

    kind: Literal["language_modeling"] = "language_modeling"
    scale: PositiveFloat | Literal["inverse_sqrt_d_model"] | None = None


@register("head")
class MaskedLanguageModeling(VocabularyHead):
    """Scores of the masked token: dense, activation, norm, vocabulary (BERT)."""

    kind: Literal["masked_language_modeling"] = "masked_language_modeling"
    activation: Activation = "gelu"
    norm: Norm
    bias: bool = True


@register("head")
class Pooler(Component):
    """The last hidden state, and the first token through a dense layer and an activation (BERT)."""

    kind: Literal["pooler"] = "pooler"
    activation: Activation = "tanh"


@register("head")
class Classification(Component):
    """Scores of ``labels`` classes for the whole sequence.

    ``pooling`` takes the first token (encoders), the last (decoders) or the mean; ``activation`` puts a
    dense layer of width d_model with that activation before the classifier (BERT: tanh).
    """

    kind: Literal["classification"] = "classification"
    labels: Width
    pooling: Literal["first", "last", "mean"] = "first"
    activation: Activation | None = None
    bias: bool = True
    dropout: Probability = 0.0

    def faults(self, frame: Frame) -> Iterable[Fault]:
        if frame.causal and self.pooling == "first":
            yield Fault(
                ("pooling",),
                "must not be first in a decoder, whose first token sees no other",
                self.pooling,
                "last or mean would work",
            )


@register("head")
class NoHead(Component):
    """The last hidden state alone."""

    kind: Literal["none"] = "none"
