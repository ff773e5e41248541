"""The module of the norm."""

import torch
from torch import Tensor, nn

from zoo.context import BuildContext
from zoo.registry import builds
from zoo_doorstop.norm import DynamicTanh


@builds(DynamicTanh)
class DynamicTanhModule(nn.Module):
    def __init__(self, spec: DynamicTanh, context: BuildContext) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((1,), spec.scale))
        self.weight = nn.Parameter(torch.ones(context.d_model))
        self.bias = nn.Parameter(torch.zeros(context.d_model))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * torch.tanh(self.scale * x) + self.bias
