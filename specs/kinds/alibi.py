"""Biases of scores that grow with distance."""

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from specs.base.base import Fault, OmitDefault, PositiveFloat, RuleContext
from specs.base.descriptions import ValueDescriptions
from specs.base.registry import register
from specs.base.words import TIMES, PartContext, number_text
from specs.kinds.position import PositionKind


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
