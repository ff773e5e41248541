"""The kind of a norm, without torch."""

from typing import ClassVar, Literal

from specs.base.base import Component, PositiveFloat
from specs.base.registry import register


@register("norm", implementation="zoo_doorstop.norm_module")
class DynamicTanh(Component):
    """Dynamic tanh (DyT: Zhu et al., 2025), in the place of a norm: weight * tanh(scale * x) + bias, without statistics."""

    kind: Literal["doorstop"] = "doorstop"
    title: ClassVar[str] = "DyT"
    scale: PositiveFloat = 0.5
    """Factor on the input at random initialization."""
