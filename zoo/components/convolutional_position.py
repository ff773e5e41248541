"""Positions from a convolution of the tokens."""

from __future__ import annotations

from torch import Tensor

import specs.kinds.convolutional_position as spec
from zoo.components.activation import activation
from zoo.components.convolution import WeightNormConvolution
from zoo.components.position import Position
from zoo.context import BuildContext
from zoo.core.precision import wide
from zoo.registry import builds


@builds(spec.Convolutional)
class Convolutional(Position):
    """activation(convolution(x)), as long as x."""

    def __init__(self, spec: spec.Convolutional, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.convolution = WeightNormConvolution(context.d_model, spec.kernel, spec.groups)
        self.activation = activation(spec.activation)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        y = self.convolution(x.transpose(1, 2))[
            :, :, : x.shape[1]
        ]  # B D T, without the last of an even kernel
        return x + wide(self.activation(y)).transpose(1, 2)
