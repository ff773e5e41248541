"""Residual connections: combining a branch with the residual stream."""

from typing import Annotated, Literal

from specs.base import Component, OmitDefault, PositiveFloat, Slot
from specs.registry import register

Residual = Annotated[Component, Slot("residual")]


@register("residual")
class Add(Component):
    """The sum x + scale * branch (He et al., 2016)."""

    kind: Literal["add"] = "add"
    scale: Annotated[PositiveFloat, OmitDefault()] = 1.0
    """Factor on the branch (Granite: 0.22)."""


@register("residual")
class NoResidual(Component):
    """The branch output without a residual connection, for ablations."""

    kind: Literal["none"] = "none"
