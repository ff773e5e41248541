"""The kind, without torch."""

from typing import Annotated, Literal

from pydantic import Field

from specs.base import Component
from specs.registry import register


@register("feed_forward", implementation="zoo_squared_relu.module")
class SquaredReLU(Component):
    """down(relu(up(x)) ** 2) (So et al., 2021)."""

    kind: Literal["squared_relu"] = "squared_relu"
    hidden: Annotated[int, Field(gt=0)]
