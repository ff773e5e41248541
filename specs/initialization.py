"""Recipes for random weights."""

from typing import Annotated, Literal

from specs.base import Component, PositiveFloat, Slot
from specs.registry import register

Initialization = Annotated[Component, Slot("initialization")]


@register("initialization")
class Normal(Component):
    """Matrices and tables from N(0, std), biases 0, norms 1 (BERT).

    ``depth_scaled`` divides the std of the projections that write to the residual stream by
    sqrt(2 * layers) (GPT-2).
    """

    kind: Literal["normal"] = "normal"
    std: PositiveFloat = 0.02
    depth_scaled: bool = False


@register("initialization")
class XavierUniform(Component):
    """Matrices uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010); tables N(0, d_model ** -0.5)."""

    kind: Literal["xavier_uniform"] = "xavier_uniform"


@register("initialization")
class T5Factors(Component):
    """T5's own: each matrix normal with a std from its fan-in, times ``factor``; tables N(0, factor)."""

    kind: Literal["t5"] = "t5"
    factor: PositiveFloat = 1.0
