"""Residual connections: combining a branch with the residual stream."""

from typing import Annotated, Literal

from specs.base.base import Component, OmitDefault, PositiveFloat, Slot
from specs.base.registry import register

Residual = Annotated[Component, Slot("residual")]


@register("residual")
class Add(Component):
    """The sum stream_scale * x + scale * branch (He et al., 2016)."""

    kind: Literal["add"] = "add"
    scale: Annotated[PositiveFloat, OmitDefault()] = 1.0
    """Factor on the branch (Granite: 0.22)."""
    stream_scale: Annotated[PositiveFloat, OmitDefault()] = 1.0
    """Factor on the residual stream (DeepNet: Wang et al., 2022; MiniMax-01: `(2 * layers) ** 0.25`)."""


@register("residual")
class NoResidual(Component):
    """The branch output without a residual connection, for ablations."""

    kind: Literal["none"] = "none"
