"""Positions from a convolution of the tokens."""

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.base import Fault, RuleContext
from specs.base.registry import register
from specs.base.words import PartContext
from specs.kinds.activation import ACTIVATION_TITLES, Activation
from specs.kinds.position import PositionKind


class OfNeighbours(PositionKind):
    """Relative positions of neighbours, by convolutions over the embeddings that are added to them."""

    kernel: Annotated[int, Field(gt=0, le=2**12)]
    """Width of the kernel, in vectors; an even one reaches further back than ahead."""
    groups: Annotated[int, Field(gt=0, le=2**12)] = 16
    """Number of groups of channels, which do not mix; it must divide `d_model`."""
    activation: Activation = "gelu"
    """Activation after each convolution."""
    embedded: ClassVar[bool] = True

    def details(self, context: PartContext) -> list[str]:
        return [f"kernel {self.kernel}", f"{self.groups} groups", ACTIVATION_TITLES[self.activation]]

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if context.d_model % self.groups:
            divisors = (n for n in range(self.groups, 0, -1) if context.d_model % n == 0)
            yield Fault(
                ("groups",),
                f"must divide d_model, which is {context.d_model}",
                self.groups,
                f"Use {next(divisors)}.",
            )
        if context.causal:
            yield Fault(
                ("kind",),
                "belongs to an encoder, because the convolution sees following vectors",
                self.kind,
                "Use learned, sinusoidal or rope.",
            )


@register("position")
class Convolutional(OfNeighbours):
    """A convolution over the embeddings, added to them: relative positions of neighbours (wav2vec 2.0: Baevski et al., 2020)."""

    kind: Literal["convolutional"] = "convolutional"
    title: ClassVar[str] = "Convolutional positions"
    kernel: Annotated[int, Field(gt=0, le=2**12)] = 128


@register("position")
class StackedConvolutional(OfNeighbours):
    """Convolutions in a row over the embeddings, added to them, each with a norm without weights after it (data2vec for audio:
    Baevski et al., 2022)."""

    kind: Literal["stacked_convolutional"] = "stacked_convolutional"
    title: ClassVar[str] = "Stacked convolutional positions"
    kernel: Annotated[int, Field(gt=0, le=2**12)] = 19
    layers: Annotated[int, Field(gt=0, le=2**8)] = 5
    """Number of convolutions."""

    def details(self, context: PartContext) -> list[str]:
        return [f"{self.layers} layers", *super().details(context)]
