"""A factor on the output of a block: B T D -> B T D."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from zoo.components.block import Branch, LayerCall
from zoo.core.initialization import Distribution
from zoo.core.precision import in_dtype, wide


class OutputScale(nn.Module):
    """x * weight, in float32 or wider, with one stored, untrained factor (Gemma 4)."""

    component_kind = "output_scale"
    weight: Tensor

    def __init__(self, start: float) -> None:
        super().__init__()
        self.start = start
        self.register_buffer("weight", torch.empty(1))

    def initial(self, leaf: str) -> Distribution:
        """The value of the spec."""
        return Distribution(constant=self.start)

    def around(self, layer: Branch, x: Tensor, call: LayerCall) -> Tensor:
        """The output of a layer, scaled."""
        return self(layer(x, call))

    def forward(self, x: Tensor) -> Tensor:
        x = wide(x)
        return x * in_dtype(self.weight, x.dtype)
