"""How a model knows where a token stands.

Embedded kinds are added to the token embedding; attention kinds act on queries and keys or on the scores.
"""

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.attention import MultiHeadShape
from specs.base import Component, Fault, Frame, PositiveFloat, Slot, Unsaid, Width
from specs.descriptions import ValueDescriptions
from specs.latent import Latent
from specs.registry import register
from specs.rope_scaling import RopeScaling, RopeScalingKind, YarnScaling

Position = Annotated[Component, Slot("position")]


class PositionKind(Component):
    """What every kind of position answers."""

    embedded: ClassVar[bool] = False
    needs_equal_heads: ClassVar[bool] = False

    def attention_faults(self, attention: MultiHeadShape | Latent, frame: Frame) -> Iterable[Fault]:
        """The broken rules between this position and an attention that it acts on."""
        return ()


@register("position")
class Learned(PositionKind):
    """A trained vector per position, added to the embeddings (BERT, GPT-2); needs the model's `context_length`."""

    kind: Literal["learned"] = "learned"
    offset: Annotated[int, Field(ge=0, le=2**16)] = 0
    """Row of the table for position 0; the table has `context_length + offset` rows (OPT, RoBERTa: 2)."""
    embedded: ClassVar[bool] = True

    def faults(self, frame: Frame) -> Iterable[Fault]:
        if frame.context_length is None:
            yield Fault(
                ("kind",),
                "needs the model's context_length: the number of rows of its table",
                self.kind,
                "add context_length: 512, or use sinusoidal, rope, alibi or relative_bias",
            )


@register("position")
class Sinusoidal(PositionKind):
    """Fixed sines and cosines, added to the embeddings (Vaswani et al., 2017)."""

    kind: Literal["sinusoidal"] = "sinusoidal"
    layout: Annotated[
        Literal["interleaved", "half_split"],
        ValueDescriptions(
            {
                "interleaved": "Sine and cosine of one frequency side by side, as in the paper.",
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
        Unsaid(),
    ] = "paper"
    """Frequency i of n, in radians per position."""
    table: Annotated[bool, Unsaid()] = False
    """Whether the `context_length` vectors are an untrained weight, which checkpoints may store and counts include
    (Whisper, Marian, Pegasus)."""
    embedded: ClassVar[bool] = True

    def faults(self, frame: Frame) -> Iterable[Fault]:
        if self.table and frame.context_length is None:
            yield Fault(
                ("table",),
                "needs the context_length: the number of its rows",
                self.table,
                "add context_length: 512, or set table: false",
            )
        if frame.d_model % 2:
            yield Fault(
                ("kind",),
                f"needs an even d_model, a sine and a cosine per frequency; it is {frame.d_model}",
                self.kind,
                f"d_model: {frame.d_model - 1} or {frame.d_model + 1} would work",
            )


@register("position")
class Rope(PositionKind):
    """Rotary embedding of queries and keys (Su et al., 2021)."""

    kind: Literal["rope"] = "rope"
    theta: PositiveFloat = 10000.0
    """Base of the frequencies: pair i of n rotates by `theta ** (-i / n)` radians per position (Llama 3: 500000)."""
    dimensions: Width | None = None
    """Rotated dimensions of each head, the first ones; it must be even (GPT-J: 64, Phi-2: 32). Default: all."""
    layout: Annotated[
        Literal["half_split", "interleaved"],
        ValueDescriptions(
            {
                "half_split": "Dimension i is paired with i + n/2 of n (Llama, GPT-NeoX).",
                "interleaved": "Neighbouring dimensions are paired (the paper, GPT-J).",
            }
        ),
    ] = "half_split"
    """Which dimensions rotate together."""
    scaling: RopeScaling | None = None
    """Rescaling of the frequencies for contexts longer than those trained on. Default: none."""

    def faults(self, frame: Frame) -> Iterable[Fault]:
        if self.dimensions is not None and self.dimensions % 2:
            yield Fault(
                ("dimensions",),
                "must be even: dimensions rotate in pairs",
                self.dimensions,
                f"{self.dimensions - 1} or {self.dimensions + 1} would work",
            )
        if isinstance(self.scaling, YarnScaling) and self.theta <= 1:
            yield Fault(
                ("theta",),
                "must exceed 1: yarn looks for a pair by powers of it",
                self.theta,
                "10000.0 would work",
            )
        if self.scaling is not None:
            yield from (fault.under("scaling") for fault in self.scaling.faults(frame))

    def attention_faults(self, attention: MultiHeadShape | Latent, frame: Frame) -> Iterable[Fault]:
        width = attention.head_width(frame.d_model)
        if self.dimensions is None and width % 2:
            yield Fault(
                ("kind",),
                f"rotates dimensions in pairs, and the heads are {width} wide, which is odd",
                self.kind,
                "give an even head_dim or other heads"
                + (f", or rotate part of each head: dimensions: {width - 1}" if width > 1 else ""),
            )
        elif self.dimensions is not None and self.dimensions > width:
            yield Fault(
                ("dimensions",),
                f"must not exceed the width of a head, which is {width}",
                self.dimensions,
                f"even numbers up to {width - width % 2} would work",
            )
        elif isinstance(self.scaling, RopeScalingKind):
            yield from (
                fault.under("scaling") for fault in self.scaling.width_faults(self.dimensions or width)
            )


@register("position")
class Alibi(PositionKind):
    """ALiBi: a penalty on the scores that is linear in distance (Press et al., 2021); no parameters."""

    kind: Literal["alibi"] = "alibi"
    scale: Annotated[PositiveFloat, Unsaid()] = 1.0
    """Factor on the penalty (Falcon: `head_dim ** -0.5`)."""
    precision: Annotated[
        Literal["float32", "bfloat16"],
        ValueDescriptions(
            {
                "float32": "No rounding.",
                "bfloat16": "Slope, position of the key and their product are rounded, as Falcon computes them.",
            }
        ),
        Unsaid(),
    ] = "float32"
    """Rounding of the penalty; `bfloat16` works only in causal stacks."""
    needs_equal_heads: ClassVar[bool] = True

    def faults(self, frame: Frame) -> Iterable[Fault]:
        if self.precision == "bfloat16" and not frame.causal:
            yield Fault(
                ("precision",),
                "must be float32 in a bidirectional stack: what grows with the position of the key favours one side",
                self.precision,
                "float32 would work, or a causal stack",
            )


@register("position")
class RelativeBias(PositionKind):
    """A trained bias on the scores per head and bucket of distances, shared by the layers of a stack (T5)."""

    kind: Literal["relative_bias"] = "relative_bias"
    buckets: Annotated[int, Field(ge=2, le=2**16)] = 32
    """Number of buckets: near distances have one each, farther ones share buckets of logarithmic width."""
    max_distance: Annotated[int, Field(gt=0, le=2**20)] = 128
    """Distance in tokens from which on all share the last bucket."""
    needs_equal_heads: ClassVar[bool] = True

    def faults(self, frame: Frame) -> Iterable[Fault]:
        sides = self.buckets if frame.causal else self.buckets // 2
        if sides < 2:
            yield Fault(
                ("buckets",),
                "must be at least 4 in a bidirectional stack: near and far distances on either side",
                self.buckets,
                "4 or more would work",
            )
            return
        exact = sides // 2
        if self.max_distance <= exact:
            yield Fault(
                ("max_distance",),
                f"must exceed {exact}, the distances that have a bucket of their own",
                self.max_distance,
                f"{exact + 1} or more would work",
            )


@register("position")
class NoPosition(PositionKind):
    """No position: attention sees a set of tokens, though a causal mask tells their order in part (NoPE)."""

    kind: Literal["none"] = "none"
