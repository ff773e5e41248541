"""Feed-forward layers."""

from typing import Annotated, Literal

from pydantic import Field

from specs.activation import Activation
from specs.base import Component, PositiveFloat, Probability, Slot, Width
from specs.registry import register

FeedForward = Annotated[Component, Slot("feed_forward")]


class TwoLayer(Component):
    """What every feed-forward with a hidden layer states."""

    hidden: Width
    activation: Activation
    bias: bool = True
    dropout: Probability = 0.0


@register("feed_forward")
class MLP(TwoLayer):
    """down(activation(up(x))) (Vaswani et al., 2017)."""

    kind: Literal["mlp"] = "mlp"


@register("feed_forward")
class Gated(TwoLayer):
    """down(activation(gate(x)) * up(x)): GLU variants (Shazeer, 2020). SwiGLU is silu, GeGLU is gelu.

    ``limit`` clamps the gate to at most that much and up to between plus and minus that much; ``up_offset`` is added
    to up (GPT-OSS: 7.0 and 1.0, with quick_gelu).
    """

    kind: Literal["gated"] = "gated"
    limit: PositiveFloat | None = None
    up_offset: Annotated[float, Field(allow_inf_nan=False)] | None = None
