"""Residual connections: B T D and B T D -> B T D."""

from __future__ import annotations

from torch import Tensor, nn

import specs.kinds.residual as spec
from zoo.components.scaling import scaled
from zoo.context import BuildContext
from zoo.registry import builds


@builds(spec.Add)
class Add(nn.Module):
    """stream_scale * x + scale * branch."""

    def __init__(self, spec: spec.Add, context: BuildContext) -> None:
        super().__init__()
        self.scale, self.stream_scale = spec.scale, spec.stream_scale

    def forward(self, x: Tensor, branch: Tensor) -> Tensor:
        return scaled(x, self.stream_scale) + scaled(branch, self.scale)


@builds(spec.NoResidual)
class NoResidual(nn.Module):
    """branch."""

    def __init__(self, spec: spec.NoResidual, context: BuildContext) -> None:
        super().__init__()

    def forward(self, x: Tensor, branch: Tensor) -> Tensor:
        return branch
