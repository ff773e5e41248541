"""Feed-forwards side by side: B T D -> B T D."""

from __future__ import annotations

import functools
import operator

from torch import Tensor, nn

import specs.kinds.side_by_side as spec
from zoo.context import BuildContext
from zoo.registry import build_component, builds


class NormedFeedForward(nn.Module):
    """output_norm(feed_forward(norm(x)))."""

    def __init__(self, spec: spec.NormedFeedForward, context: BuildContext) -> None:
        super().__init__()
        self.norm = build_component(spec.norm, context)
        self.feed_forward = build_component(spec.feed_forward, context)
        self.output_norm = build_component(spec.output_norm, context)

    def forward(self, x: Tensor) -> Tensor:
        return self.output_norm(self.feed_forward(self.norm(x)))


@builds(spec.SideBySide)
class SideBySide(nn.Module):
    """output_norm of the sum of all branches."""

    def __init__(self, spec: spec.SideBySide, context: BuildContext) -> None:
        super().__init__()
        self.branches = nn.ModuleDict(
            {name: NormedFeedForward(branch, context) for name, branch in spec.branches.items()}
        )
        self.output_norm = build_component(spec.output_norm, context)

    def forward(self, x: Tensor) -> Tensor:
        return self.output_norm(
            functools.reduce(operator.add, (branch(x) for branch in self.branches.values()))
        )
