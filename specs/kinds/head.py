"""Heads: outputs computed from the last hidden state."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from specs.base.base import (
    Component,
    Fault,
    Slot,
)
from specs.base.registry import interface, register
from specs.base.roles import Role, fields_by_role
from specs.base.words import WIDTHS, Output, PartContext, Step, product
from specs.kinds.activation import ACTIVATION_TITLES, Activation
from specs.kinds.embedding import EmbeddingKind

PrintedAs = Literal["outputs", "vectors", "classes", "masks", "transcripts", "rankings"]


@interface("head")
class HeadKind(Component):
    """Interface of all kinds of head.

    ``meets`` says that it compares the vectors of the two stacks of a dual encoder, and ``scores_vocabulary`` that its outputs are
    scores of every token of the vocabulary, and ``predicts_next`` that these are scores of the next token, so that the model can
    generate.  ``compared_by`` is how the quality of an export is judged: by its outputs as they are, by ``logits`` as scores of
    classes or tokens, by the scores of pairs of a text and an image, by the directions of the vectors of ``vector_output``, by the
    late interaction of its vectors, one per token, by its weights of tokens as terms, or by each of several heads.
    ``printed_as`` is the form in which ``zoo run`` prints the outputs of an encoder: each by name, or as vectors, probabilities of classes,
    tokens for masks, transcripts, or texts in order for queries.
    ``stored_as`` is the kind of head whose tensors a checkpoint holds, if another. ``embeds_texts`` says that modules of
    sentence-transformers can describe it, whose settings then apply to texts, and ``weighs_terms`` that it weighs terms of the
    vocabulary.
    """

    meets: ClassVar[bool] = False
    scores_vocabulary: ClassVar[bool] = False
    predicts_next: ClassVar[bool] = False
    compared_by: ClassVar[
        Literal["values", "scores", "pairs", "vectors", "late interaction", "terms", "heads"]
    ] = "values"
    printed_as: ClassVar[PrintedAs] = "outputs"
    stored_as: ClassVar[str | None] = None
    embeds_texts: ClassVar[bool] = False
    weighs_terms: ClassVar[bool] = False

    @property
    def parts(self) -> "Mapping[str, HeadKind]":
        """The heads that give its outputs, by name."""
        return {self.kind: self}

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
    def compares_texts(self) -> bool:
        """Whether its outputs rank texts for a query."""
        return self.compared_by in ("vectors", "late interaction", "terms", "heads")

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

    def seeking(self, token: int) -> "HeadKind":
        """The head with another id of the token that it looks for, if it looks for one."""
        return self

    @property
    def label_count(self) -> int | None:
        """The number of classes that config files name; None without classes."""
        return next((value for _, role, value in fields_by_role(self) if role is Role.LABELS), None)

    @property
    def pools_last(self) -> bool:
        """Whether it reads the vector of the last token alone."""
        return False

    @property
    def span_width(self) -> int | None:
        """The largest number of words in the spans that it scores; None if it reads no words."""
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


@register("head")
class NoHead(HeadKind):
    """The `last_hidden_state` alone, batch x tokens x d_model."""

    kind: Literal["none"] = "none"
    printed_as: ClassVar[PrintedAs] = "vectors"
    compared_by: ClassVar[Literal["vectors"]] = "vectors"

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        yield Output("Hidden states", product("B", context.length, context.width))


@register("head")
class Pooler(HeadKind):
    """BERT's pooler: `last_hidden_state`, and as `pooler_output` its first token through a dense layer."""

    kind: Literal["pooler"] = "pooler"
    printed_as: ClassVar[PrintedAs] = "vectors"
    compared_by: ClassVar[Literal["vectors"]] = "vectors"
    activation: Activation = "tanh"
    """Activation of the dense layer."""

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        yield Output("Hidden states", product("B", context.length, context.width))
        yield Step("Pooler", "dense", ("first token", WIDTHS, ACTIVATION_TITLES[self.activation]))
        yield Output("Pooled output", product("B", context.width))
