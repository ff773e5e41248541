"""The module of the kind."""

import torch
from torch import Tensor, nn

from zoo.components.linear import Linear
from zoo.context import BuildContext
from zoo.registry import builds
from zoo_squared_relu import operations as operations
from zoo_squared_relu.spec import SquaredReLU


@builds(SquaredReLU)
class SquaredReLUModule(nn.Module):
    def __init__(self, spec: SquaredReLU, context: BuildContext) -> None:
        super().__init__()
        self.up = Linear(context.d_model, spec.hidden)
        self.down = Linear(spec.hidden, context.d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(torch.square(self.up(x).relu()))
