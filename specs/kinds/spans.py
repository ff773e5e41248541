"""The head for spans of words, and the recurrent layers that it may have."""

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from specs.base.base import Component, Dropout, Fault, RuleContext, Slot, Width
from specs.base.registry import register
from specs.base.words import WIDTHS, Output, PartContext, Step, product
from specs.kinds.embedding import EmbeddingKind
from specs.kinds.head import HeadKind

GATES = ("input", "output", "forget", "cell")
"""The gates of an LSTM, in the order of ONNX."""


@register("recurrent")
class Lstm(Component):
    """LSTM layers that read the words in both directions, each direction with half of the width (Hochreiter and Schmidhuber, 1997)."""

    kind: Literal["lstm"] = "lstm"
    title: ClassVar[str] = "Bidirectional LSTM"
    layers: Annotated[int, Field(gt=0, le=64)] = 1
    """Number of layers."""

    def details(self, context: PartContext) -> list[str]:
        return [f"{self.layers:,} layer{'s' * (self.layers > 1)}"]


Recurrent = Annotated[Component, Slot("recurrent")]


@register("head")
class Spans(HeadKind):
    """Scores of spans of words for labels that the text itself names (GLiNER: Zaratiana et al., 2023). Gives `logits`,
    batch x words x widths x labels.

    A text begins with its labels, each after a label token, whose vector stands for the label; the first token of a word stands for
    the word. Callers tell words and spans: `words_mask` has the number of the word that each token begins, from 1, or 0;
    `text_lengths` the number of words; `span_idx` the first and last word of `max_width` spans from each word; and `span_mask`
    which of them are in the text. Without these, every token is a word.
    """

    kind: Literal["spans"] = "spans"
    label_token: Annotated[int, Field(ge=0)]
    """Id of the token before each label (GLiNER: `<<ENT>>`)."""
    max_width: Annotated[int, Field(gt=0, le=1024)] = 12
    """Largest number of words in a span."""
    projection: Width | None = None
    """Width of a projection of the tokens, with a bias. Default: no projection."""
    recurrent: Recurrent | None = None
    """Recurrent layers over the words. Default: none."""
    dropout: Dropout = 0.0
    """Dropout probability inside the layers for spans and labels during training."""

    @property
    def token_to_find(self) -> int:
        return self.label_token

    def seeking(self, token: int) -> Self:
        return self.model_copy(update={"label_token": token})

    @property
    def span_width(self) -> int:
        return self.max_width

    def width(self, d_model: int) -> int:
        """The width of the vectors of words, spans and labels."""
        return self.projection or d_model

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        if self.projection is not None:
            yield Step("Projection", "projection", (WIDTHS,))
        yield Step("Words", details=("first token of each",))
        if self.recurrent is not None:
            yield Step(self.recurrent.heading, "recurrent", tuple(self.recurrent.details(context)))
        yield Step("Spans", "spans", ("first and last word", f"up to {self.max_width} words"))
        yield Step("Labels", "labels", ("vectors of label tokens",))
        yield Step("Product of each span and label")
        yield Output("Logits", product("B", "words", self.max_width, "labels"))

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if context.causal:
            yield Fault(
                ("kind",),
                "requires an encoder whose tokens see each other, as labels come before the text",
                self.kind,
                "Use token_classification.",
            )
        if context.vocab_size is not None and self.label_token >= context.vocab_size:
            yield Fault(
                ("label_token",),
                f"must be below vocab_size, which is {context.vocab_size}",
                self.label_token,
                f"Use 0 to {context.vocab_size - 1}.",
            )
        if isinstance(self.recurrent, Lstm) and self.width(context.d_model) % 2:
            yield Fault(
                ("recurrent",),
                "needs words with an even width, half of it for each direction",
                self.width(context.d_model),
                "Add a projection of an even width, or remove recurrent.",
            )

    def embedding_faults(self, embedding: EmbeddingKind, width: int) -> Iterable[Fault]:
        if not embedding.takes_tokens:
            yield Fault(("kind",), "requires an embedding of tokens", self.kind, "Use token_classification.")
