"""A minimal kind named `doorstop` for every slot."""

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.base import Component
from specs.base.registry import register as register_kind
from specs.kinds.attention import MultiHead
from specs.kinds.block import PreNorm
from specs.kinds.connector import ConnectorKind
from specs.kinds.embedding import Tokens
from specs.kinds.head import HeadKind
from specs.kinds.mixer import MixerKind
from specs.kinds.position import PositionKind
from specs.kinds.rope_scaling import RopeScalingKind

Doorstop = Literal["doorstop"]


def register(slot: str) -> Callable[[type[Component]], type[Component]]:
    """The decorator of a kind that is implemented in this package."""
    return register_kind(slot, implementation="zoo_doorstop.module")


@register("norm")
class Scale(Component):
    """Multiplication by a weight, without statistics."""

    kind: Doorstop = "doorstop"


@register("feed_forward")
class Bottleneck(Component):
    """down(relu(up(x)))."""

    kind: Doorstop = "doorstop"
    hidden: Annotated[int, Field(gt=0)] = 8
    """Width of the hidden layer."""


@register("residual")
class Half(Component):
    """x + branch / 2."""

    kind: Doorstop = "doorstop"


@register("position")
class Ramp(PositionKind):
    """A trained vector times the position, added to the embedding."""

    kind: Doorstop = "doorstop"
    embedded: ClassVar[bool] = True


@register("rope_scaling")
class Slower(RopeScalingKind):
    """All frequencies divided by 3."""

    kind: Doorstop = "doorstop"


@register("attention")
class NegatedAttention(MultiHead):
    """Multi-head attention with its output negated."""

    kind: Doorstop = "doorstop"  # type: ignore[assignment]


@register("mixer")
class Average(MixerKind):
    """A moving average of all tokens so far, times a weight."""

    kind: Doorstop = "doorstop"
    keeps: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """The share of the average that a token leaves in place."""


@register("decay")
class Halving(Component):
    """Every state halves with every token."""

    kind: Doorstop = "doorstop"


@register("connector")
class Cut(ConnectorKind):
    """The first values of each vector, times a weight."""

    kind: Doorstop = "doorstop"


@register("block")
class PlainBlock(PreNorm):
    """Attention and feed-forward after one norm each."""

    kind: Doorstop = "doorstop"  # type: ignore[assignment]


@register("embedding")
class DoubledTokens(Tokens):
    """Token embedding times 2."""

    kind: Doorstop = "doorstop"  # type: ignore[assignment]


@register("head")
class Pair(HeadKind):
    """Two scores per token."""

    kind: Doorstop = "doorstop"
    labels: ClassVar[int] = 2


@register("initialization")
class Tiny(Component):
    """Normal with a standard deviation of 0.01."""

    kind: Doorstop = "doorstop"
