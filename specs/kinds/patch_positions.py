"""Positions of the patches of an image, by row and column, that act inside attention."""

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from specs.base.base import Fault, OmitDefault, PositiveFloat, RuleContext, Width
from specs.base.descriptions import ValueDescriptions
from specs.base.registry import register
from specs.base.words import PartContext, number_text
from specs.kinds.mixer import AttentionKind
from specs.kinds.position import PositionKind


class PatchPosition(PositionKind):
    """Interface of positions that follow from the row and column of a patch."""

    of_patches: ClassVar[bool] = True

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

    Vectors before the patches are not rotated.
    """

    kind: Literal["axial_rope"] = "axial_rope"
    title: ClassVar[str] = "Axial RoPE"
    coordinates: Annotated[
        Literal["centred", "index"],
        ValueDescriptions(
            {
                "centred": "From -1 to 1 over the image, times 2 pi (DINOv3).",
                "index": "The number of the row or column, from 0 (Qwen2-VL).",
            }
        ),
        OmitDefault(),
    ] = "centred"
    """Positions of rows and columns."""
    theta: PositiveFloat = 100.0
    """Base of the frequencies: pair i of the n of an axis rotates by `theta ** (-i / n)` radians per unit of the position.
    Dimension i of a head is paired with the one half the head's width further on."""

    def details(self, context: PartContext) -> list[str]:
        return [f"θ {number_text(self.theta)}", "rows and columns"]

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from super().faults(context)
        if context.packed and self.coordinates != "index":
            yield Fault(
                ("coordinates",),
                "must be index for images of any size",
                self.coordinates,
                "Set coordinates: index.",
            )

    def attention_faults(self, attention: AttentionKind, context: RuleContext) -> Iterable[Fault]:
        width = attention.head_width(context.d_model)
        if width % 4:
            yield Fault(
                ("kind",),
                f"requires a head width that 4 divides, for pairs along two axes; it is {width}",
                self.kind,
                f"Set head_dim: {width + 4 - width % 4}, or another number of heads.",
            )


@register("position")
class Interpolated(PatchPosition):
    """A trained vector per place of a square grid, added to the patches of images of any size: each gets a mean of the four places
    around its own, weighted by nearness, with the corners of the image at the corners of the grid (Qwen3-VL)."""

    kind: Literal["interpolated"] = "interpolated"
    title: ClassVar[str] = "Interpolated positions"
    side: Width
    """Number of rows, and of columns, of the grid (Qwen3-VL: 48)."""
    embedded: ClassVar[bool] = True

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from super().faults(context)
        if context.patches and not context.packed:
            yield Fault(
                ("kind",),
                "requires images of any size: those of one size have a vector per patch",
                self.kind,
                "Use learned, or embedding: {kind: packed_patches, ...}.",
            )


@register("position")
class RelativeBias2d(PatchPosition):
    """A trained bias on the scores per head and difference in rows and columns, shared by the layers of a stack unless
    `per_layer` (BEiT: Bao et al., 2021).

    Vectors before the patches share three more biases: to patches, from patches, and among themselves.
    """

    kind: Literal["relative_bias_2d"] = "relative_bias_2d"
    title: ClassVar[str] = "2-D relative bias"
    needs_whole_image: ClassVar[bool] = True
    per_layer: Annotated[bool, OmitDefault()] = False
    """Whether every layer has its own biases (BEiT as fine-tuned)."""
    needs_equal_heads: ClassVar[bool] = True

    def details(self, context: PartContext) -> list[str]:
        return ["by row and column", "added to scores"]

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from super().faults(context)
        if context.packed:
            yield Fault(
                ("kind",),
                "requires images of one size, whose differences in rows and columns are bounded",
                self.kind,
                "Use axial_rope, or embedding: {kind: patches, ...}.",
            )

    @property
    def owned_by_layers(self) -> bool:
        return self.per_layer
