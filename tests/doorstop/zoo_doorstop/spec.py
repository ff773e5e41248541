"""A minimal kind named `doorstop` for every slot; those of the norm and the mixer have files of their own."""

from collections.abc import Callable, Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.base import Component
from specs.base.registry import register as register_kind
from specs.base.words import WIDTHS, Output, PartContext, PositionStep, Step, product
from specs.kinds.attention import MultiHead
from specs.kinds.block import PreNorm
from specs.kinds.connector import ConnectorKind
from specs.kinds.embedding import Tokens
from specs.kinds.head import HeadKind
from specs.kinds.position import PositionKind
from specs.kinds.rope_scaling import RopeScalingKind
from zoo_doorstop import average as average
from zoo_doorstop import norm as norm

Doorstop = Literal["doorstop"]


def register(slot: str) -> Callable[[type[Component]], type[Component]]:
    """The decorator of a kind that is implemented in this package."""
    return register_kind(slot, implementation="zoo_doorstop.module")


@register("feed_forward")
class Bottleneck(Component):
    """down(relu(up(x)))."""

    kind: Doorstop = "doorstop"
    title: ClassVar[str] = "Bottleneck"
    hidden: Annotated[int, Field(gt=0)] = 8
    """Width of the hidden layer."""

    def details(self, context: PartContext) -> list[str]:
        return [f"{context.read_width} → {self.hidden} → {context.width}"]


@register("residual")
class Half(Component):
    """x + branch / 2."""

    kind: Doorstop = "doorstop"


@register("position")
class Ramp(PositionKind):
    """A trained vector times the position, added to the embedding."""

    kind: Doorstop = "doorstop"
    title: ClassVar[str] = "Ramp"
    about: ClassVar[str] = "Adds the position times a trained vector."
    embedded: ClassVar[bool] = True

    def details(self, context: PartContext) -> list[str]:
        return [f"one vector of {context.width}"]


@register("recurrent")
class ScaledWords(Component):
    """Words times a trained vector."""

    kind: Doorstop = "doorstop"
    title: ClassVar[str] = "Scaled words"


@register("rope_scaling")
class Slower(RopeScalingKind):
    """All frequencies divided by 3."""

    kind: Doorstop = "doorstop"

    @property
    def brief(self) -> str:
        return "three times slower"


@register("attention")
class NegatedAttention(MultiHead):
    """Multi-head attention with its output negated."""

    kind: Doorstop = "doorstop"  # type: ignore[assignment]
    title: ClassVar[str] = "Negated attention"

    def details(self, context: PartContext) -> list[str]:
        return [*super().details(context), "times -1"]


@register("decay")
class Halving(Component):
    """Every state halves with every token."""

    kind: Doorstop = "doorstop"


@register("connector")
class Cut(ConnectorKind):
    """The first values of each vector, times a weight."""

    kind: Doorstop = "doorstop"
    title: ClassVar[str] = "Cut"

    def steps(self, context: PartContext) -> Iterator[Step]:
        yield Step(self.heading, "", (f"the first {context.width} of {context.read_width}",))


@register("block")
class PlainBlock(PreNorm):
    """Attention and feed-forward after one norm each."""

    kind: Doorstop = "doorstop"  # type: ignore[assignment]


@register("embedding")
class DoubledTokens(Tokens):
    """Token embedding times 2."""

    kind: Doorstop = "doorstop"  # type: ignore[assignment]

    def steps(self, context: PartContext) -> Iterator[Step | PositionStep]:
        yield from super().steps(context)
        yield Step("Doubled", role="other")


@register("head")
class Pair(HeadKind):
    """Two scores per token."""

    kind: Doorstop = "doorstop"
    labels: ClassVar[int] = 2

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        yield Step("Pair of scores", "scores", (WIDTHS,))
        yield Output("Two logits", product("B", context.length, self.labels))


@register("initialization")
class Tiny(Component):
    """Normal with a standard deviation of 0.01."""

    kind: Doorstop = "doorstop"
