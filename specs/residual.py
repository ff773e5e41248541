"""How a branch joins the residual stream."""

from typing import Annotated, Literal

from specs.base import Component, Slot
from specs.registry import register

Residual = Annotated[Component, Slot("residual")]


@register("residual")
class Add(Component):
    """The sum x + branch (He et al., 2016)."""

    kind: Literal["add"] = "add"


@register("residual")
class NoResidual(Component):
    """The branch alone: the ablation that shows what residuals are for."""

    kind: Literal["none"] = "none"
