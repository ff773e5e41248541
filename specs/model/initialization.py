"""Recipes for random weights."""

from typing import Annotated, Literal

from specs.base.base import Component, PositiveFloat, Slot
from specs.base.registry import register

Initialization = Annotated[Component, Slot("initialization")]


@register("initialization")
class Normal(Component):
    """Matrices and tables normal around 0, biases 0, weights of norms 1 (BERT)."""

    kind: Literal["normal"] = "normal"
    std: PositiveFloat = 0.02
    """Standard deviation of matrices and tables."""
    depth_scaled: bool = False
    """Whether `std` is divided by `sqrt(2 * layers)` in the projections that write to the residual stream (GPT-2)."""


@register("initialization")
class XavierUniform(Component):
    """Matrices uniform within +-sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010).

    Tables are normal with a standard deviation of `d_model ** -0.5`.
    """

    kind: Literal["xavier_uniform"] = "xavier_uniform"


@register("initialization")
class T5Factors(Component):
    """T5's own recipe: each matrix normal with a standard deviation that follows from its fan-in."""

    kind: Literal["t5"] = "t5"
    factor: PositiveFloat = 1.0
    """Factor on every standard deviation (`initializer_factor` in Hugging Face)."""
