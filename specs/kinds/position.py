"""Position encodings.

Embedded kinds are added to the token embedding; attention kinds act on queries and keys or on the scores.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.base import Component, Fault, OmitDefault, PositiveFloat, RuleContext, Slot, Spec, Width
from specs.base.descriptions import ValueDescriptions
from specs.base.registry import interface, register
from specs.base.words import TIMES, PartContext, number_text, product
from specs.kinds.activation import ACTIVATION_TITLES, Activation
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
    must have the same number of heads, ``of_patches`` that it follows from the row and column of a patch, ``needs_whole_image``
    that it acts on all patches of an image at once, and ``read_outside_layers`` that the stack reads the weights that each layer
    holds.  ``about`` is its sentence on pages where it has no figures.
    """

    embedded: ClassVar[bool] = False
    needs_equal_heads: ClassVar[bool] = False
    of_patches: ClassVar[bool] = False
    needs_whole_image: ClassVar[bool] = False
    read_outside_layers: ClassVar[bool] = False
    about: ClassVar[str] = "No visualization for this kind."

    @property
    def owned_by_layers(self) -> bool:
        """Whether every layer has its own weights."""
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
    def scales_queries(self) -> bool:
        """Whether queries grow with their position."""
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
class Sinusoidal(PositionKind):
    """Fixed sines and cosines, added to the embeddings (Vaswani et al., 2017)."""

    kind: Literal["sinusoidal"] = "sinusoidal"
    title: ClassVar[str] = "Sinusoidal positions"
    layout: Annotated[
        Literal["interleaved", "half_split"],
        ValueDescriptions(
            {
                "interleaved": "Sine and cosine of each frequency adjacent, as in the paper.",
                "half_split": "All sines first (tensor2tensor, Marian, Pegasus).",
            }
        ),
    ] = "interleaved"
    """Order of sines and cosines in a vector."""
    base: PositiveFloat = 10000.0
    """Base of the geometric sequence of wavelengths."""
    spacing: Annotated[
        Literal["paper", "tensor2tensor"],
        ValueDescriptions(
            {
                "paper": "`base ** (-i / n)`, which stops short of `1 / base`.",
                "tensor2tensor": "`base ** (-i / (n - 1))`, which ends at `1 / base` (Whisper).",
            }
        ),
        OmitDefault(),
    ] = "paper"
    """Frequency i of n, in radians per position."""
    offset: Annotated[int, Field(ge=0, le=2**16), OmitDefault()] = 0
    """Number added to every position (XGLM: 2)."""
    zero: Annotated[int | None, Field(ge=0, le=2**24), OmitDefault()] = None
    """Position whose vector is zero (XGLM with a `pad_token_id` of 2 or more: that less 2). Default: none."""
    table: Annotated[bool, OmitDefault()] = False
    """Whether the `context_length` vectors are an untrained weight, which checkpoints may store and counts include
    (Whisper, Marian, Pegasus)."""
    embedded: ClassVar[bool] = True

    def details(self, context: PartContext) -> list[str]:
        return ["fixed", *([product(context.rows, context.width)] if context.rows else [])]

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if self.table and context.context_length is None:
            yield Fault(
                ("table",),
                "requires the context_length, the number of its rows",
                self.table,
                "Add context_length: 512, or set table: false.",
            )
        if self.table and self.zero is not None:
            rule = "must be unset with table, which has a vector for every position"
            yield Fault(("zero",), rule, self.zero, "Remove it, or set table: false.")
        if context.d_model % 2:
            yield Fault(
                ("kind",),
                f"requires an even d_model, with a sine and a cosine per frequency; it is {context.d_model}",
                self.kind,
                f"Use d_model: {context.d_model - 1} or {context.d_model + 1}.",
            )


@register("position")
class Convolutional(PositionKind):
    """A convolution over the embeddings, added to them: relative positions of neighbours (wav2vec 2.0: Baevski et al., 2020)."""

    kind: Literal["convolutional"] = "convolutional"
    title: ClassVar[str] = "Convolutional positions"
    kernel: Annotated[int, Field(gt=0, le=2**12)] = 128
    """Width of the kernel, in vectors; an even one reaches further back than ahead."""
    groups: Annotated[int, Field(gt=0, le=2**12)] = 16
    """Number of groups of channels, which do not mix; it must divide `d_model`."""
    activation: Activation = "gelu"
    """Activation of the convolution."""
    embedded: ClassVar[bool] = True

    def details(self, context: PartContext) -> list[str]:
        return [f"kernel {self.kernel}", f"{self.groups} groups", ACTIVATION_TITLES[self.activation]]

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if context.d_model % self.groups:
            divisors = (n for n in range(self.groups, 0, -1) if context.d_model % n == 0)
            yield Fault(
                ("groups",),
                f"must divide d_model, which is {context.d_model}",
                self.groups,
                f"Use {next(divisors)}.",
            )
        if context.causal:
            yield Fault(
                ("kind",),
                "belongs to an encoder, because the convolution sees following vectors",
                self.kind,
                "Use learned, sinusoidal or rope.",
            )


def scaled_parts(attention: AttentionKind) -> Fault:
    """The fault of a factor on queries that have a part without position."""
    return Fault(
        ("query_scaling",),
        "requires queries that are rotated as a whole, and those of latent attention are not",
        attention.kind,
        "Remove it, or use multi_head or grouped_query.",
    )


@register("position")
class Alibi(PositionKind):
    """ALiBi: a penalty on the scores that is linear in distance (Press et al., 2021); no parameters."""

    kind: Literal["alibi"] = "alibi"
    title: ClassVar[str] = "ALiBi"
    scale: Annotated[PositiveFloat, OmitDefault()] = 1.0
    """Factor on the penalty (Falcon: `head_dim ** -0.5`)."""
    precision: Annotated[
        Literal["float32", "bfloat16"],
        ValueDescriptions(
            {
                "float32": "No rounding.",
                "bfloat16": "Slope, key position and their product are rounded (Falcon).",
            }
        ),
        OmitDefault(),
    ] = "float32"
    """Rounding of the penalty; `bfloat16` works only in causal stacks."""
    needs_equal_heads: ClassVar[bool] = True

    def details(self, context: PartContext) -> list[str]:
        scale = [] if self.scale == 1 else [f"scale {number_text(self.scale)}"]
        return [f"slope {TIMES} distance", "added to scores", *scale]

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if self.precision == "bfloat16" and not context.causal:
            yield Fault(
                ("precision",),
                "must be float32 in a bidirectional stack, because rounding errors grow with the key position",
                self.precision,
                "Use float32, or a causal stack.",
            )


@register("position")
class RelativeBias(PositionKind):
    """A trained bias on the scores per head and distance bucket, shared by the layers of a stack unless `per_layer` (T5)."""

    kind: Literal["relative_bias"] = "relative_bias"
    title: ClassVar[str] = "Relative bias"
    buckets: Annotated[int, Field(ge=2, le=2**16)] = 32
    """Number of buckets: one per short distance, and buckets of logarithmic width for longer ones."""
    max_distance: Annotated[int, Field(gt=0, le=2**20)] = 128
    """Distance in tokens beyond which all share the last bucket."""
    gated: Annotated[bool, OmitDefault()] = False
    """Whether each layer multiplies the bias of a query by a gate from 1 up, which it computes from that query's part of the
    input (WavLM)."""
    per_layer: Annotated[bool, OmitDefault()] = False
    """Whether every layer has its own biases (UMT5)."""
    needs_equal_heads: ClassVar[bool] = True

    @property
    def owned_by_layers(self) -> bool:
        return self.per_layer

    @property
    def biases_blocks(self) -> bool:
        return not self.gated

    @property
    def farthest(self) -> int:
        return self.max_distance

    def details(self, context: PartContext) -> list[str]:
        return [f"{self.buckets} buckets", f"distance < {self.max_distance}", "added to scores"]

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        sides = self.buckets if context.causal else self.buckets // 2
        if sides < 2:
            yield Fault(
                ("buckets",),
                "must be at least 4 in a bidirectional stack: near and far distances on either side",
                self.buckets,
                "Use 4 or more.",
            )
            return
        exact = sides // 2
        if self.max_distance <= exact:
            yield Fault(
                ("max_distance",),
                f"must exceed {exact}, the number of distances with their own bucket",
                self.max_distance,
                f"Use {exact + 1} or more.",
            )

    def attention_faults(self, attention: AttentionKind, context: RuleContext) -> Iterable[Fault]:
        if not self.gated:
            return
        if not attention.projects_heads:
            yield Fault(
                ("gated",),
                "requires attention whose heads divide its input, and those of latent attention do not",
                attention.kind,
                "Remove it, or use multi_head or grouped_query.",
            )
        elif attention.position_heads * attention.head_width(context.d_model) != context.d_model:
            yield Fault(
                ("gated",),
                f"requires heads that divide the input, whose width is {context.d_model}",
                f"{attention.position_heads} heads of width {attention.head_width(context.d_model)}",
                "Remove it, or remove head_dim.",
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
    def scales_queries(self) -> bool:
        return self.query_scaling is not None

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if self.query_scaling is not None and not context.causal:
            yield Fault(
                ("query_scaling",),
                "requires a causal stack, where a query sees more keys the later it is",
                self.query_scaling.length,
                "Remove it.",
            )

    def attention_faults(self, attention: AttentionKind, context: RuleContext) -> Iterable[Fault]:
        if self.query_scaling is not None and not attention.projects_heads:
            yield scaled_parts(attention)
