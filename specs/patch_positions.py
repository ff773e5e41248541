"""Positions of the patches of an image, by row and column, that act inside attention."""

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from specs.attention import MultiHeadShape
from specs.base import Fault, OmitDefault, PositiveFloat, RuleContext
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


@register("position")
class RelativeBias2d(PatchPosition):
    """A trained bias on the scores per head and difference in rows and columns, shared by the layers of a stack unless
    `per_layer` (BEiT: Bao et al., 2021).

    Vectors before the patches share three more biases: to patches, from patches, and among themselves.
    """

    kind: Literal["relative_bias_2d"] = "relative_bias_2d"
    per_layer: Annotated[bool, OmitDefault()] = False
    """Whether every layer has its own biases (BEiT as fine-tuned)."""
    needs_equal_heads: ClassVar[bool] = True

    @property
    def owned_by_layers(self) -> bool:
        return self.per_layer
