"""Embeddings: tokens, an image or audio to vectors of width d_model."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import Field

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
    default_faults,
)
from specs.base.descriptions import ValueDescriptions
from specs.base.registry import interface, register
from specs.base.roles import Role, changed_fields
from specs.base.words import SIZES, TIMES, WIDTHS, PartContext, PositionStep, Step
from specs.kinds.norm import Norm, norm_steps

InputPart = tuple[Any, ...]
"""An index into a batch of inputs."""


class PatchGrid(NamedTuple):
    """The rows and columns of the patches of an image, each ``size`` pixels high and wide."""

    rows: int
    columns: int
    size: int


class TokenInput(NamedTuple):
    """A further input beside the tokens: numbers from 0 to below ``below``, batch x tokens, or boxes, batch x tokens x 4.

    Numbers are whole unless it ``is_real``.
    """

    name: str
    below: int
    is_box: bool = False
    is_real: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes after batch x tokens."""
        return (4,) if self.is_box else ()


@interface("embedding")
class EmbeddingKind(Component):
    """Interface of all kinds of embedding.

    ``input_name`` is the name of the model input, ``takes_tokens`` whether it holds token ids, ``of_patches`` whether images,
    whose patches have rows and columns, and ``packed`` whether these may have any size; ``reads_hidden_states`` whether it also takes
    the hidden states of another model; ``input_title`` names the input in drawings.
    """

    input_name: ClassVar[str]
    takes_tokens: ClassVar[bool] = False
    of_patches: ClassVar[bool] = False
    packed: ClassVar[bool] = False
    reads_hidden_states: ClassVar[bool] = False
    input_title: ClassVar[str] = "Tokens"

    def drawn_input(self, length: str, context_length: int | None) -> tuple[str | int, ...]:
        """The sizes of one input in a drawing, where ``length`` names the number of vectors."""
        return (length,) if self.takes_tokens else self.input_shape(context_length)

    def steps(self, context: PartContext) -> Iterator[Step | PositionStep]:
        """The steps from an input to the first layer, in the order of the forward."""
        yield Step(self.heading, "", tuple(self.details(context)))
        yield PositionStep()

    @property
    def any_length(self) -> bool:
        """Whether inputs may have any length, up to the context length."""
        return self.takes_tokens

    @property
    def takes_mask(self) -> bool:
        """Whether the model has an input that tells real inputs from padding."""
        return self.takes_tokens

    @property
    def fixed_length(self) -> int | None:
        """The number of vectors per input, if the embedding fixes it."""
        return None

    def input_shape(self, context_length: int | None) -> tuple[int, ...]:
        """The shape of one input, for embeddings of other inputs than tokens: of ``context_length`` vectors if inputs may have any
        length."""
        raise NotImplementedError

    def input_length(self, vectors: int) -> int:
        """The length of the shortest input with a number of vectors, for embeddings of inputs of any length."""
        return vectors

    def vector_count(self, length: int) -> int:
        """The number of vectors made of an input of a length, for embeddings of inputs of any length."""
        return length

    def vector_names(self, count: int, column_seconds: float | None = None) -> list[str]:
        """A name for each of a number of vectors, for embeddings of other inputs than tokens: what it is made of.

        ``column_seconds``: the time from one column of an input to the next, for audio.
        """
        return list(map(str, range(count)))

    @property
    def segment_count(self) -> int:
        """The number of segments of tokens that have an embedding each; 0 for none."""
        return 0

    @property
    def token_inputs(self) -> tuple[TokenInput, ...]:
        """The inputs beside tokens and their types; callers that leave one out mean zeros."""
        return ()

    @property
    def second_width(self) -> int | None:
        """The width of a second stream beside the first, after it in the same vectors; None for none."""
        return None

    @property
    def sees_order(self) -> bool:
        """Whether vectors depend on the order of the parts of an input, whatever the positions."""
        return False

    @property
    def tokens_before(self) -> int:
        """The number of trained vectors before those made of the input."""
        return 0

    def ends(self, vectors: int) -> tuple[InputPart, InputPart] | None:
        """The parts of an input that only the first and only the last of a number of vectors sees; None if unknown."""
        return None

    @property
    def neighbours(self) -> tuple[InputPart, InputPart] | None:
        """The parts of an input that two neighbouring vectors are made of, the first after ``tokens_before``; None if unknown."""
        return None

    @property
    def has_distillation_token(self) -> bool:
        """Whether the second vector is a trained distillation token."""
        return False

    @property
    def patch_grid(self) -> PatchGrid | None:
        """The patches that the last vectors are made of, row by row; None for other inputs than images."""
        return None

    @property
    def patch_width(self) -> int:
        """The number of values of a patch of packed images; 0 for other inputs."""
        return 0

    @property
    def owns_table(self) -> bool:
        """Whether a decoder has a token table of its own."""
        return False

    def unread_faults(self, block: str) -> Iterator[Fault]:
        """The violated rule of a second stream that no block reads, of blocks of a kind."""
        yield from ()

    def with_mask_below(self, vocabulary: int) -> Self:
        """The same embedding with a mask token of a smaller vocabulary, if it knows one."""
        return self

    def table_width(self, d_model: int) -> int:
        """The width of the token table, or of the vectors if there is none."""
        return d_model

    def position_width(self, d_model: int) -> int:
        """The width of the vectors to which positions are added."""
        return d_model

    def position_count(self, context_length: int | None) -> int | None:
        """The number of vectors to which positions are added."""
        return context_length

    def of_fewer_patches(self, side: int, square: int) -> Self:
        """The same embedding of at most ``side`` x ``side`` patches, or of the next number that ``square`` divides; itself for inputs
        of other numbers of vectors."""
        return self


def scale_steps(scale: float | str | None, d_model: int) -> Iterator[Step]:
    """The step of a factor, a number or the square root of d_model, if there is one."""
    if scale is not None:
        yield Step(f"{TIMES} √{d_model:,}" if isinstance(scale, str) else f"{TIMES} {scale:g}", role="other")


def kernel_faults(kernel: int) -> Iterator[Fault]:
    """The violated rule of convolutions whose output stands where the centre of its input is."""
    if kernel % 2 == 0:
        yield Fault(
            ("kernel",),
            "must be odd, so that it has a centre",
            kernel,
            f"Use {kernel - 1} or {kernel + 1}.",
        )


Embedding = Annotated[EmbeddingKind, Slot("embedding")]


class Projection(Spec):
    """A matrix from the width of the token table to `d_model`."""

    bias: bool = True
    """Whether the projection adds a bias."""
    place: Annotated[
        Literal["last", "first"],
        ValueDescriptions(
            {
                "last": "After token types, positions and the norm (ALBERT, ELECTRA).",
                "first": "Before token types, positions and the norm (OPT-350m).",
            }
        ),
    ] = "last"
    """Place of the projection in the embedding."""


class TokenDropout(Spec):
    """Mask tokens as vectors of zeros, and the other vectors larger the more tokens are masked (ESM-2)."""

    token: Annotated[int, Field(ge=0)]
    """Id of the mask token, below `vocab_size`."""
    rate: Annotated[float, Field(ge=0, lt=1)] = 0.12
    """Share of mask tokens in training: vectors are multiplied by (1 - rate) / (1 - the input's share)."""

    def faults(self, context: RuleContext) -> Iterator[Fault]:
        """The violated rules of a scale by the share of mask tokens."""
        if context.architecture != "encoder" or context.causal:
            yield Fault(
                (),
                "requires an encoder that is not causal, because it counts the mask tokens of the whole input",
                self.token,
                "Remove it.",
            )
        if context.vocab_size is not None and self.token >= context.vocab_size:
            yield Fault(
                ("token",),
                f"must be below vocab_size, which is {context.vocab_size}",
                self.token,
                f"Use 0 to {context.vocab_size - 1}.",
            )


CORNERS = 8
"""The number of coordinates of the four corners of a box."""


class Layout(Spec):
    """A narrower stream of places on a page, beside the stream of tokens: norm(projection(box) + position) (LiLT)."""

    coordinates: Annotated[int, Field(gt=0, le=2**16)]
    """Number of coordinates of a page (LiLT: 1024)."""
    width: Annotated[Width, Role.WIDTH]
    """Width of the stream (LiLT: 192). The six vectors of a box, of its edges, height and width, are together as wide as `d_model`."""
    norm: Norm
    """Norm of the stream."""


@register("embedding", default=True)
class Tokens(EmbeddingKind):
    """Token ids: token * scale + token type + position, then norm, then projection."""

    kind: Annotated[Literal["tokens"], Field(exclude=True)] = "tokens"
    token_types: Annotated[int, Field(ge=0, le=2**16)] = 0
    """Number of segment embeddings (BERT: 2). With 0, the model has no `token_type_ids` input."""
    tasks: Annotated[int | None, Field(gt=0, le=2**16), OmitDefault()] = None
    """Number of task embeddings of an encoder (ERNIE: 3). With two or more, the model has a `task_type_ids` input. Default: none."""
    boxes: Annotated[int | None, Field(gt=0, le=2**16), OmitDefault()] = None
    """Number of coordinates of a page (LayoutLM: 1024), in an encoder. Each token then has a box on the page, which the input `bbox`
    gives, batch x tokens x 4: its left, top, right and bottom edge, whose vectors are added, with those of its height and width.
    Default: no boxes."""
    layout: Annotated[Layout | None, OmitDefault()] = None
    """Stream of places on a page, made of the box of each token, which the input `bbox` gives; for an encoder with blocks of kind
    `two_streams` (LiLT). Default: none."""
    corners: Annotated[PositiveFloat | None, OmitDefault()] = None
    """Factor on the coordinates of the box of each token, which the input `bbox` gives as parts of the page from 0 to 1; for an attention
    whose position is `relative_boxes` (BROS: 100). Default: no boxes."""
    width: Annotated[Width | None, Role.WIDTH] = None
    """Width of the token table (ALBERT, ELECTRA); if it differs from `d_model`, a projection follows. Default:
    `d_model`."""
    trigrams: Annotated[bool, OmitDefault()] = False
    """Whether the projection, which must come first, reads the vectors of the token after, of the token and of the one before side by
    side, with zeros where there is none (MobileBERT). Only in an encoder."""
    projection: Projection | None = None
    """Projection from `width` to `d_model`. Default: one with a bias if the two differ, otherwise none."""
    scale: PositiveFloat | Literal["sqrt_d_model"] | None = None
    """Factor on the token vectors: a number, or `sqrt_d_model` (the original Transformer, Gemma). Default: 1."""
    token_dropout: Annotated[TokenDropout | None, OmitDefault()] = None
    """Scale that depends on the share of mask tokens among the real ones, in an encoder. Default: none."""
    norm: Norm | None = None
    """Norm of the sum of token, token type and position vectors (BERT), and of the vectors of images among tokens (ModernVBERT).
    Default: none."""
    dropout: Dropout = 0.0
    """Dropout probability on the embeddings during training."""
    own_table: Annotated[bool, OmitDefault()] = False
    """Whether the decoder of an encoder-decoder has a token table of its own (T5Gemma). Default: it shares the encoder's."""

    input_name: ClassVar[str] = "input_ids"
    takes_tokens: ClassVar[bool] = True

    def table_width(self, d_model: int) -> int:
        return self.width or d_model

    def position_width(self, d_model: int) -> int:
        first = self.projection is not None and self.projection.place == "first"
        return d_model if first else self.table_width(d_model)

    @property
    def segment_count(self) -> int:
        return self.token_types

    @property
    def token_inputs(self) -> tuple[TokenInput, ...]:
        tasks = [TokenInput("task_type_ids", self.tasks or 0)] if (self.tasks or 0) > 1 else []
        coordinates = self.boxes or (self.layout and self.layout.coordinates)
        boxes = [TokenInput("bbox", coordinates, is_box=True)] if coordinates else []
        corners = [TokenInput("bbox", 1, is_box=True, is_real=True)] if self.corners else []
        return *tasks, *boxes, *corners

    @property
    def second_width(self) -> int | None:
        if self.layout is None:
            return None if self.corners is None else CORNERS
        return self.layout.width

    def steps(self, context: PartContext) -> Iterator[Step | PositionStep]:
        yield Step("Token embedding", "token", (SIZES,))
        yield from scale_steps(self.scale, context.width)
        if self.token_dropout is not None:
            yield Step(f"{TIMES} {1 - self.token_dropout.rate:g} / unmasked share", role="other")
        projects = self.projection is not None or self.table_width(context.width) != context.width
        beside = ["of 3 tokens"] if self.trigrams else []
        projection = [Step("Projection", "projection", (WIDTHS, *beside))] if projects else []
        first = self.projection is not None and self.projection.place == "first"
        yield from projection if first else ()
        if self.token_types:
            yield Step("Token types", "token_type", (SIZES,), joins="+")
        if self.tasks:
            yield Step("Task", "task_type", (SIZES,), joins="+")
        if self.boxes:
            yield Step("Boxes on the page", "boxes", (f"{self.boxes:,} coordinates",), joins="+")
        yield PositionStep()
        yield from norm_steps(self.norm)
        yield from () if first else projection
        if self.layout is not None:
            details = (f"{self.layout.coordinates:,} coordinates", f"{self.layout.width:,} wide")
            yield Step("Layout", "layout", details, joins="∥")
        if self.corners is not None:
            yield Step("Corners of boxes", None, (f"{TIMES} {self.corners:g}",), joins="∥")

    @property
    def sees_order(self) -> bool:
        return self.trigrams

    def faults(self, context: RuleContext) -> Iterator[Fault]:
        first = self.projection is not None and self.projection.place == "first"
        if self.trigrams and not first:
            yield Fault(
                ("trigrams",),
                "requires a projection before positions, which reads the vectors",
                True,
                "Add projection: {place: first}, or remove it.",
            )
        if context.architecture != "encoder":
            keys = ("tasks", "boxes", "layout", "corners", "trigrams")
            yield from default_faults(self, keys, "requires architecture: encoder")
        if self.token_dropout is not None:
            yield from (fault.under("token_dropout") for fault in self.token_dropout.faults(context))
        narrow = self.width not in (None, context.d_model)
        if self.norm and (self.projection or narrow) and context.architecture == "vision-language":
            yield Fault(
                ("norm",),
                "must not be combined with a width or a projection in a vision-language model, whose images have the norm too",
                self.norm.kind,
                "Remove it.",
            )
        readers = [*changed_fields(self, ("boxes", "layout", "corners"))]
        if len(readers) > 1:
            rule = f"must not be set beside {readers[0]}, which reads the boxes"
            yield Fault((readers[1],), rule, "a value", "Remove one of the two.")
        if self.layout is not None:
            yield from self._layout_faults(self.layout, context)

    def unread_faults(self, block: str) -> Iterator[Fault]:
        if self.layout is not None:
            remedy = "Use blocks of kind two_streams, or remove it."
            yield Fault(("layout",), "must be read by the blocks", block, remedy)
        elif self.corners is not None:
            remedy = "Set the position of the attention to {kind: relative_boxes}, or remove it."
            yield Fault(("corners",), "must be read by the blocks", block, remedy)

    @property
    def owns_table(self) -> bool:
        return self.own_table

    def with_mask_below(self, vocabulary: int) -> Self:
        dropout = self.token_dropout
        if dropout is None or dropout.token < vocabulary:
            return self
        smaller = dropout.model_copy(update={"token": vocabulary - 1})
        return self.model_copy(update={"token_dropout": smaller})

    def _layout_faults(self, layout: Layout, context: RuleContext) -> Iterator[Fault]:
        if context.d_model % 6:
            yield Fault(
                ("layout",),
                f"requires a d_model that the six vectors of a box divide, and it is {context.d_model}",
                "a layout",
                f"Use {max(context.d_model // 6, 1) * 6}, or remove it.",
            )
        yield from (
            fault.under("layout", "norm")
            for fault in layout.norm.faults(replace(context, d_model=layout.width))
        )

    def why_insensitive(self, width: int) -> str:
        return "" if self.norm is None else self.norm.why_insensitive(self.position_width(width))
