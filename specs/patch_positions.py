"""Positions of the patches of an image, by row and column, that act inside attention."""

from collections.abc import Iterable
from typing import Literal

from specs.attention import MultiHeadShape
from specs.base import Fault, PositiveFloat, RuleContext
from specs.latent import Latent
from specs.position import PositionKind
from specs.registry import register


class PatchPosition(PositionKind):
    """Interface of positions that follow from the row and column of a patch."""

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if not context.patches:
            yield Fault(
                ("kind",),
                "requires an embedding of patches, whose rows and columns it reads",
                self.kind,
                "Use rope, alibi or relative_bias, or embedding: {kind: patches, ...}.",
            )


@register("position")
class AxialRope(PatchPosition):
    """Rotary embedding of queries and keys in two dimensions: one half of the pairs rotates with the row of a patch, the other
    with its column (DINOv3: Siméoni et al., 2025).

    Positions run from -1 to 1 over the image. Vectors before the patches are not rotated.
    """

    kind: Literal["axial_rope"] = "axial_rope"
    theta: PositiveFloat = 100.0
    """Base of the frequencies: pair i of the n of an axis makes `theta ** (-i / n)` turns from the centre of the image to its
    border. Dimension i of a head is paired with the one half the head's width further on."""

    def attention_faults(self, attention: MultiHeadShape | Latent, context: RuleContext) -> Iterable[Fault]:
        width = attention.head_width(context.d_model)
        if width % 4:
            yield Fault(
                ("kind",),
                f"requires a head width that 4 divides, for pairs along two axes; it is {width}",
                self.kind,
                f"Set head_dim: {width + 4 - width % 4}, or another number of heads.",
            )
