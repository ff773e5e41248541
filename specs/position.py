"""How a model knows where a token stands.

Embedded kinds are added to the token embedding; attention kinds act on queries and keys or on the scores.
"""

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.attention import MultiHeadShape
from specs.base import Component, Fault, Frame, PositiveFloat, Slot, Unsaid, Width
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
    """A trained vector per position (BERT, GPT-2); the table has context_length + offset rows (OPT: 2)."""

    kind: Literal["learned"] = "learned"
    offset: Annotated[int, Field(ge=0, le=2**16)] = 0
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
    """Fixed sines and cosines (Vaswani et al., 2017).

    ``interleaved`` puts sine and cosine of one frequency side by side, as the paper does; ``half_split``
    puts all sines first (tensor2tensor, Marian, Pegasus).  Of n frequencies, ``paper`` has base ** (-i / n), which
    stops short of 1 / base, and ``tensor2tensor`` base ** (-i / (n - 1)), which reaches it (Whisper).  ``table`` keeps
    the context_length vectors as a weight that is not trained: checkpoints may store it, and counts include it
    (Whisper, Marian, Pegasus).
    """

    kind: Literal["sinusoidal"] = "sinusoidal"
    layout: Literal["interleaved", "half_split"] = "interleaved"
    base: PositiveFloat = 10000.0
    spacing: Annotated[Literal["paper", "tensor2tensor"], Unsaid()] = "paper"
    table: Annotated[bool, Unsaid()] = False
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
    """Rotary embedding of queries and keys (Su et al., 2021).

    ``dimensions`` of each head are rotated (default: all); ``half_split`` pairs dimension i with i + n/2
    (Llama, NeoX), ``interleaved`` pairs neighbours (the paper, GPT-J).
    """

    kind: Literal["rope"] = "rope"
    theta: PositiveFloat = 10000.0
    dimensions: Width | None = None
    layout: Literal["half_split", "interleaved"] = "half_split"
    scaling: RopeScaling | None = None

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
    """A penalty on the scores that is linear in distance (Press et al., 2021); no parameters.

    ``scale`` multiplies it.  ``precision: bfloat16`` rounds it as Falcon computes it: slope, position and their
    product, which grows with the position of the key where the penalty would shrink with its distance.
    """

    kind: Literal["alibi"] = "alibi"
    scale: Annotated[PositiveFloat, Unsaid()] = 1.0
    precision: Annotated[Literal["float32", "bfloat16"], Unsaid()] = "float32"
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
    """A trained bias per head and bucket of distances, shared by the layers of a stack (T5)."""

    kind: Literal["relative_bias"] = "relative_bias"
    buckets: Annotated[int, Field(ge=2, le=2**16)] = 32
    max_distance: Annotated[int, Field(gt=0, le=2**20)] = 128
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
    """None: attention sees a set of tokens (a causal mask still tells their order in part)."""

    kind: Literal["none"] = "none"
