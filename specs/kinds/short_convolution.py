"""Short convolutions over the last few tokens."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.registry import register
from specs.base.words import PartContext
from specs.kinds.mixer import MixerKind, convolution_text

KernelSize = Annotated[int, Field(ge=2, le=64)]


@register("mixer")
class ShortConvolution(MixerKind):
    """Double-gated short convolution (LFM2, Liquid AI, 2025): output(c * conv(b * x)), with b, c and x from one projection."""

    kind: Literal["short_convolution"] = "short_convolution"
    title: ClassVar[str] = "Short convolution"
    kernel_size: KernelSize = 3
    """Number of tokens that a convolution sees: a token and those before it."""
    bias: bool = False
    """Whether the projections and the convolution add a bias."""

    def details(self, context: PartContext) -> list[str]:
        return [convolution_text(self.kernel_size)]
