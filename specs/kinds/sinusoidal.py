"""Sines and cosines of positions."""

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.base import Fault, OmitDefault, PositiveFloat, RuleContext
from specs.base.descriptions import ValueDescriptions
from specs.base.registry import register
from specs.base.words import PartContext, product
from specs.kinds.position import PositionKind, paired_width_faults


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
        yield from paired_width_faults(self, context)
