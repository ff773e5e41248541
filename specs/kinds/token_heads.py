"""Heads that score every token, or every vector of a sound."""

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.base import Dropout, Fault, OmitDefault, RuleContext, Width
from specs.base.registry import register
from specs.base.roles import Role
from specs.base.words import WIDTHS, Output, PartContext, Step, product
from specs.kinds.head import HeadKind, PrintedAs
from specs.kinds.transforming_head import TransformingHead, dense_steps


@register("head")
class TokenClassification(TransformingHead):
    """Scores of classes for each token: transform, dropout, classifier. Gives `logits`, batch x tokens x labels."""

    kind: Literal["token_classification"] = "token_classification"
    compared_by: ClassVar[Literal["scores"]] = "scores"
    labels: Annotated[Width, Role.LABELS]
    """Number of classes."""
    bias: bool = True
    """Whether the classifier adds a bias."""
    dropout: Dropout = 0.0
    """Dropout probability before the classifier during training."""

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        yield from dense_steps(self)
        yield Step("Classifier of tokens", "labels", (WIDTHS,))
        yield Output("Logits", product("B", context.length, self.labels))


@register("head")
class QuestionAnswering(TransformingHead):
    """Scores of the start and end of an answer: transform, dropout, output layer. Gives `start_logits` and `end_logits`,
    batch x tokens, and with `relevance` also `relevance_logits`, batch."""

    kind: Literal["question_answering"] = "question_answering"
    bias: bool = True
    """Whether the output layer adds a bias."""
    dropout: Dropout = 0.0
    """Dropout probability before the output layer during training."""
    relevance: Annotated[bool, OmitDefault()] = False
    """Whether the first token also gives a score of the whole text, which tells the text with the answer (DPR's reader)."""

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        yield from dense_steps(self)
        yield Step("Start and end of the answer", "span", (WIDTHS,))
        if self.relevance:
            yield Step("Relevance of the text", "relevance", (WIDTHS,))
        yield Output("Start and end logits", f"2 of {product('B', context.length)}")

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from super().faults(context)
        if self.relevance and context.causal:
            yield Fault(
                ("relevance",),
                "must be false in a decoder, whose first token sees no other",
                True,
                "Remove it.",
            )


@register("head")
class ReplacedTokenDetection(TransformingHead):
    """Scores of replaced tokens: transform, output layer (ELECTRA's discriminator). Gives `logits`, batch x tokens."""

    kind: Literal["replaced_token_detection"] = "replaced_token_detection"
    bias: bool = True
    """Whether the output layer adds a bias."""

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        yield from dense_steps(self)
        yield Step("Replaced-token detection", "score", (WIDTHS,))
        yield Output("Logits", product("B", context.length))


@register("head")
class CTC(HeadKind):
    """Scores of labels for each vector, with a blank between labels (connectionist temporal classification: Graves et al.,
    2006). Gives `logits`, batch x vectors x labels."""

    kind: Literal["ctc"] = "ctc"
    printed_as: ClassVar[PrintedAs] = "transcripts"
    compared_by: ClassVar[Literal["scores"]] = "scores"
    labels: Annotated[Width, Role.LABELS]
    """Number of labels: characters or other tokens, and the blank."""
    blank: Annotated[int, Field(ge=0)] = 0
    """Id of the blank, below `labels`: the padding token of wav2vec2."""
    dropout: Dropout = 0.0
    """Dropout probability before the output layer during training."""

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        yield Step("CTC", "labels", (WIDTHS, f"blank {self.blank:,}"))
        yield Output("Logits", product("B", context.length, self.labels))

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if self.blank >= self.labels:
            yield Fault(
                ("blank",),
                f"must be below labels, which is {self.labels}",
                self.blank,
                f"Use 0 to {self.labels - 1}.",
            )
