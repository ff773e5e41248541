"""Short convolutions over the last few tokens."""

from typing import Annotated, Literal

from pydantic import Field

from specs.base.base import Component
from specs.base.registry import register

KernelSize = Annotated[int, Field(ge=2, le=64)]


@register("mixer")
class ShortConvolution(Component):
    """Double-gated short convolution (LFM2, Liquid AI, 2025): output(c * conv(b * x)), with b, c and x from one projection."""

    kind: Literal["short_convolution"] = "short_convolution"
    kernel_size: KernelSize = 3
    """Number of tokens that a convolution sees: a token and those before it."""
    bias: bool = False
    """Whether the projections and the convolution add a bias."""
