"""The kind, without torch."""

from typing import Annotated, Literal

from pydantic import Field

from specs.base.base import Component
from specs.base.registry import register
from specs.base.roles import Role


@register("feed_forward", implementation="zoo_squared_relu.module")
class SquaredReLU(Component):
    """Two layers with a squared ReLU between them: down(relu(up(x)) ** 2) (Primer: So et al., 2021)."""

    kind: Literal["squared_relu"] = "squared_relu"
    hidden: Annotated[int, Field(gt=0), Role.WIDTH]
    """Width of the hidden layer."""
