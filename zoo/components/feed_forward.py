"""Feed-forward layers: B T D -> B T D."""

from __future__ import annotations

from torch import Tensor, nn

import specs.feed_forward as spec
from zoo.components.activation import activation
from zoo.components.linear import Linear
from zoo.context import BuildContext
from zoo.registry import builds


@builds(spec.MLP)
class MLP(nn.Module):
    """down(activation(up(x)))."""

    def __init__(self, spec: spec.MLP, context: BuildContext) -> None:
        super().__init__()
        self.up = Linear(context.d_model, spec.hidden, bias=spec.bias)
        self.activation = activation(spec.activation)
        self.dropout = nn.Dropout(spec.dropout)
        self.down = Linear(spec.hidden, context.d_model, bias=spec.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.dropout(self.activation(self.up(x))))


@builds(spec.Gated)
class Gated(nn.Module):
    """down(activation(gate(x)) * up(x))."""

    def __init__(self, spec: spec.Gated, context: BuildContext) -> None:
        super().__init__()
        self.gate = Linear(context.d_model, spec.hidden, bias=spec.bias)
        self.up = Linear(context.d_model, spec.hidden, bias=spec.bias)
        self.activation = activation(spec.activation)
        self.dropout = nn.Dropout(spec.dropout)
        self.down = Linear(spec.hidden, context.d_model, bias=spec.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.dropout(self.activation(self.gate(x)) * self.up(x)))
