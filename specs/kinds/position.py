"""Position encodings.

Embedded kinds are added to the token embedding; attention kinds act on queries and keys or on the scores.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.base import Component, Fault, OmitDefault, PositiveFloat, RuleContext, Slot, Spec, Width
from specs.base.registry import interface, register
from specs.base.words import PartContext, product
from specs.kinds.mixer import AttentionKind


class QueryScaling(Spec):
    """A factor on the queries that grows with their position p: 1 + beta * log(1 + floor((p + offset) / length)) (Llama 4)."""

    beta: PositiveFloat
    """Growth of the factor with the logarithm (Ministral 3: 0.1)."""
    length: Width
    """Number of tokens over which the factor stays the same: the context length in training (Ministral 3: 16384)."""
    offset: Annotated[int, Field(ge=0, le=2**16), OmitDefault()] = 0
    """Number added to the position (Llama 4: 1)."""


@interface("position")
class PositionKind(Component):
    """Interface of all kinds of position.

    ``embedded`` says that it is added to the embedding instead of acting inside attention, ``needs_equal_heads`` that all layers
    must have the same number of heads, ``of_patches`` that it follows from the row and column of a patch, and ``needs_whole_image``
    that it acts on all patches of an image at once, and ``reads_second`` that it reads the second stream of the embedding.  ``about`` is its sentence on pages where it has no figures.
    """

    embedded: ClassVar[bool] = False
    needs_equal_heads: ClassVar[bool] = False
    of_patches: ClassVar[bool] = False
    needs_whole_image: ClassVar[bool] = False
    reads_second: ClassVar[bool] = False
    about: ClassVar[str] = "No visualization for this kind."

    @property
    def owned_by_layers(self) -> bool:
        """Whether every layer has its own weights.  It may also share weights of the first layer."""
        return False

    @property
    def read_outside_layers(self) -> bool:
        """Whether the stack reads weights that layers hold."""
        return False

    @property
    def score_terms(self) -> int:
        """The number of products that a score is the sum of."""
        return 1

    @property
    def by_axis(self) -> bool:
        """Whether vectors of images have a position along each of several axes."""
        return False

    def axis_faults(self) -> Iterable[Fault]:
        """The violated rules of a position in a model without images that have rows and columns."""
        return ()

    @property
    def biases_blocks(self) -> bool:
        """Whether it has biases by distances in blocks of tokens, too."""
        return False

    @property
    def tells_order(self) -> bool:
        """Whether it tells the tokens of a sequence apart."""
        return not self.is_none

    @property
    def query_growth(self) -> QueryScaling | None:
        """The growth of queries with their position, or None."""
        return None

    @property
    def gates_layers(self) -> bool:
        """Whether each layer multiplies its bias by a gate."""
        return False

    @property
    def rotates_input(self) -> bool:
        """Whether it rotates the input of the query and key projections."""
        return False

    @property
    def farthest(self) -> int | None:
        """The distance beyond which all distances are treated alike, or None."""
        return None

    @property
    def switch_length(self) -> int | None:
        """The input length beyond which it acts differently, or None."""
        return None

    def attention_faults(self, attention: AttentionKind, context: RuleContext) -> Iterable[Fault]:
        """The violated rules between this position and an attention it acts on."""
        return ()

    def layer_faults(self, others: "Sequence[PositionKind]") -> Iterable[Fault]:
        """The violated rules between this position of a stack and the positions that some of its attentions have of their own."""
        return ()


def equal_heads_faults(position: PositionKind, attention: AttentionKind) -> Iterable[Fault]:
    """The violated rule of a position that is compared with queries as wide as keys."""
    if not attention.projects_heads:
        yield Fault(
            ("kind",),
            "requires queries and keys of equal width in every head, and latent attention has none",
            position.kind,
            "Use rope, or an attention of kind multi_head, grouped_query or multi_query.",
        )


def paired_width_faults(position: PositionKind, context: RuleContext) -> Iterable[Fault]:
    """The violated rule of a position with a sine and a cosine per frequency."""
    if context.d_model % 2:
        yield Fault(
            ("kind",),
            f"requires an even d_model, with a sine and a cosine per frequency; it is {context.d_model}",
            position.kind,
            f"Use d_model: {context.d_model - 1} or {context.d_model + 1}.",
        )


Position = Annotated[PositionKind, Slot("position")]


@register("position")
class Learned(PositionKind):
    """A trained vector per position, added to the embeddings (BERT, GPT-2); needs the model's `context_length`."""

    kind: Literal["learned"] = "learned"
    title: ClassVar[str] = "Learned positions"
    offset: Annotated[int, Field(ge=0, le=2**16)] = 0
    """Row of the table for position 0; the table has `context_length + offset` rows (OPT, RoBERTa: 2)."""
    embedded: ClassVar[bool] = True

    def details(self, context: PartContext) -> list[str]:
        return [product(context.rows or 0, context.width)]

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if context.context_length is None:
            yield Fault(
                ("kind",),
                "requires the model's context_length, the number of rows of its table",
                self.kind,
                "Add context_length: 512, or use sinusoidal, rope, alibi, relative_bias or disentangled.",
            )


@register("position")
class NoPosition(PositionKind):
    """No position encoding: attention treats tokens as a set, apart from the causal mask (NoPE)."""

    kind: Literal["none"] = "none"
    title: ClassVar[str] = "No positions"
    about: ClassVar[str] = (
        "Attention sees the tokens as a set; a causal mask still reveals part of their order."
    )
    query_scaling: Annotated[QueryScaling | None, OmitDefault()] = None
    """Growth of the queries with their position, in a causal stack (Llama 4). Default: none."""

    @property
    def query_growth(self) -> QueryScaling | None:
        return self.query_scaling

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if self.query_scaling is not None and not context.causal:
            yield Fault(
                ("query_scaling",),
                "requires a causal stack, where a query sees more keys the later it is",
                self.query_scaling.length,
                "Remove it.",
            )
