"""Feed-forward layers: B T D -> B T D; where ``input_width`` says so, from another width."""

from __future__ import annotations

from statistics import NormalDist
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import specs.kinds.feed_forward as spec
from zoo.components.activation import activation
from zoo.components.linear import Linear
from zoo.components.scaling import scaled
from zoo.context import BuildContext
from zoo.core.sharding import COLUMNS, ROWS, SHARED, Sharding
from zoo.registry import builds


class Inner(nn.Module):
    """dropout(activation(up)), between the two layers of an MLP."""

    gated: ClassVar[bool] = False

    def __init__(self, spec: spec.TwoLayer) -> None:
        super().__init__()
        self.activation_name, self.activation = spec.activation, activation(spec.activation)
        self.dropout = nn.Dropout(spec.dropout)

    def forward(self, up: Tensor) -> Tensor:
        return self.dropout(self.activation(up))


class GatedInner(nn.Module):
    """dropout(activation(multiplier * gate) * (up + offset)), with both factors clamped first if the spec has a limit."""

    gated: ClassVar[bool] = True

    def __init__(self, spec: spec.Gated) -> None:
        super().__init__()
        self.activation_name, self.activation = spec.activation, activation(spec.activation)
        self.dropout = nn.Dropout(spec.dropout)
        self.limit, self.up_offset = spec.limit, spec.up_offset
        self.multiplier = spec.multipliers.gate
        self.deviations = None if spec.sparsity is None else NormalDist().inv_cdf(spec.sparsity)

    def forward(self, up: Tensor, gate: Tensor) -> Tensor:
        gate = scaled(gate, self.multiplier)
        if self.deviations is not None:
            gate = _largest(gate, self.deviations)
        if self.limit is not None:
            up, gate = up.clamp(-self.limit, self.limit), gate.clamp(max=self.limit)
        if self.up_offset is not None:
            up = up + self.up_offset
        return self.dropout(self.activation(gate) * up)


def _largest(x: Tensor, deviations: float) -> Tensor:
    """max(0, x - mean - deviations * standard deviation) over the last axis."""
    mean = x.mean(-1, keepdim=True)
    centred = x - mean
    deviation = torch.sqrt((centred * centred).mean(-1, keepdim=True))
    return F.relu(centred - deviations * deviation)


def hidden_sharding(up: Linear) -> Sharding:
    """By the hidden width: the layers into it by columns, the layer out of it by rows."""
    cuts = {"up": COLUMNS, "gate": COLUMNS, "inner.activation": SHARED, "down": ROWS}
    return Sharding(cuts, {"hidden": up.out_features}, last="down")


@builds(spec.MLP)
class MLP(nn.Module):
    """down(inner(up(x)))."""

    gate: ClassVar[None] = None
    multiplier: ClassVar[float] = 1.0

    def __init__(self, spec: spec.MLP, context: BuildContext) -> None:
        super().__init__()
        self.up = Linear(context.reads, spec.hidden, bias=spec.hidden_bias)
        self.inner = Inner(spec)
        self.down = Linear(spec.hidden, context.d_model, bias=spec.output_bias)

    def sharding(self) -> Sharding:
        """By the hidden width."""
        return hidden_sharding(self.up)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.inner(self.up(x)))


@builds(spec.Gated)
class Gated(nn.Module):
    """multiplier * down(inner(up(x), gate(x)))."""

    def __init__(self, spec: spec.Gated, context: BuildContext) -> None:
        super().__init__()
        self.gate = Linear(context.reads, spec.hidden, bias=spec.hidden_bias)
        self.up = Linear(context.reads, spec.hidden, bias=spec.hidden_bias)
        self.inner = GatedInner(spec)
        self.down = Linear(spec.hidden, context.d_model, bias=spec.output_bias)
        self.multiplier = spec.multipliers.output

    def sharding(self) -> Sharding:
        """By the hidden width, unless gates are compared with each other."""
        return hidden_sharding(self.up) if self.inner.deviations is None else Sharding()

    def forward(self, x: Tensor) -> Tensor:
        return scaled(self.down(self.inner(self.up(x), self.gate(x))), self.multiplier)
