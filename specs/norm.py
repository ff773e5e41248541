"""Normalisations."""

from typing import Annotated, Literal

from specs.base import Component, PositiveFloat, Slot, Unsaid
from specs.registry import register

Norm = Annotated[Component, Slot("norm")]


@register("norm")
class LayerNorm(Component):
    """Layer normalisation (Ba et al., 2016): centred, scaled to unit variance, then weight and bias.

    Both can be left out: OLMo's has neither.
    """

    kind: Literal["layer_norm"] = "layer_norm"
    eps: PositiveFloat = 1e-5
    weight: Annotated[bool, Unsaid()] = True
    bias: bool = True


@register("norm")
class RMSNorm(Component):
    """Root-mean-square normalisation (Zhang and Sennrich, 2019): not centred, weight only.

    With ``unit_offset`` the weight is stored around 0, and 1 is added to it (Gemma).
    """

    kind: Literal["rms_norm"] = "rms_norm"
    eps: PositiveFloat = 1e-6
    unit_offset: Annotated[bool, Unsaid()] = False


@register("norm")
class NoNorm(Component):
    """The identity."""

    kind: Literal["none"] = "none"
