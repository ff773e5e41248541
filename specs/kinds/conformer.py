"""Conformer blocks: attention and convolution between two half feed-forwards."""

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.base import Component, DescribedSpec, Fault, OmitDefault, RuleContext
from specs.base.registry import register
from specs.base.words import PartContext, PartRole, product
from specs.kinds.activation import ACTIVATION_TITLES, Activation
from specs.kinds.block import BlockParts
from specs.kinds.feed_forward import FeedForward
from specs.kinds.norm import BatchNorm, Norm
from specs.kinds.residual import Add, Residual


class ConvolutionModule(DescribedSpec):
    """Gated matrix, convolution of every channel over time, norm, activation and matrix."""

    title: ClassVar[str] = "Gated convolution"
    drawn_role: ClassVar[PartRole] = "mixer"
    kernel: Annotated[int, Field(gt=0, le=2**10)]
    """Number of vectors that the convolution sees, the own one among them. It must be odd unless `causal` (Conformer: 31,
    Parakeet: 9)."""
    causal: Annotated[bool, OmitDefault()] = False
    """Whether the convolution sees only vectors before the own one, which is otherwise in the middle (wav2vec2-BERT)."""
    activation: Activation = "silu"
    """Activation after the norm."""
    norm: Norm = BatchNorm()
    """Norm of the convolution's output."""
    bias: bool = True
    """Whether the matrices and the convolution add a bias."""

    def details(self, context: PartContext) -> list[str]:
        width = context.width
        norm = [] if self.norm.is_none else [self.norm.heading]
        sees = ["causal"] if self.causal else []
        widths = f"{width:,} → {product(2, width)} → {width:,}"
        return [widths, f"kernel {self.kernel}", *sees, *norm, ACTIVATION_TITLES[self.activation]]


@register("block")
class Conformer(BlockParts):
    """Half a feed-forward, attention, a convolution over time and another half feed-forward, each with a norm before it, and a
    norm of the sum (Gulati et al., 2020).

    Both feed-forwards are like `feed_forward`, and join the residual stream as `feed_forward_residual` states.
    """

    kind: Literal["conformer"] = "conformer"
    convolution: ConvolutionModule
    """Convolution over time, after the attention."""
    first_feed_forward_norm: Norm | None = None
    """Norm of the first feed-forward. Default: `norm`."""
    convolution_norm: Norm | None = None
    """Norm before the convolution. Default: `norm`."""
    feed_forward: FeedForward
    """Feed-forward network, the first and the last branch."""
    feed_forward_residual: Residual | None = Add(scale=0.5)
    """How the output of each feed-forward joins the residual stream. Default: half of it is added."""
    output_is_normalised: ClassVar[bool] = True

    def part_of(self, name: str) -> DescribedSpec | None:
        return super().part_of("feed_forward" if name == "first_feed_forward" else name)

    def residual_of(self, branch: str) -> Component:
        return super().residual_of("feed_forward" if branch == "first_feed_forward" else branch)

    def parts(self) -> Iterator[tuple[str, Component]]:
        yield from super().parts()
        if self.first_feed_forward_norm is not None:
            yield "first_feed_forward_norm", self.first_feed_forward_norm
        if self.convolution_norm is not None:
            yield "convolution_norm", self.convolution_norm

    def branches(self, *, cross: bool = False) -> tuple[str, ...]:
        *attentions, last = super().branches(cross=cross)
        return "first_feed_forward", *attentions, "convolution", last

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from super().faults(context)
        kernel = self.convolution.kernel
        if kernel % 2 == 0 and not self.convolution.causal:
            yield Fault(
                ("convolution", "kernel"),
                "must be odd, so that it has a centre",
                kernel,
                f"Use {kernel - 1} or {kernel + 1}, or set causal: true.",
            )
        if context.causal:
            yield Fault(
                ("kind",),
                "belongs to an encoder, because the convolution sees following vectors",
                self.kind,
                "Use pre_norm.",
            )
        yield from (fault.under("convolution", "norm") for fault in self.convolution.norm.faults(context))
