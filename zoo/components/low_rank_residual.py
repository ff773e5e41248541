"""Blocks whose first branch has a learned augmented residual (LAuReL: Menghani et al., 2024).

Shapes: batch B, tokens T, width D.
"""

from __future__ import annotations

from torch import Tensor, nn

import specs.kinds.altup as spec
import specs.kinds.block as blocks
from specs.kinds.norm_placements import Sandwich as SandwichSpec
from zoo.components.block import LayerCall, PreNorm
from zoo.components.linear import Linear
from zoo.components.norm_placements import Sandwich
from zoo.context import BuildContext
from zoo.core.precision import wide
from zoo.core.sharding import Sharding
from zoo.registry import build_component, builds


class LowRankResidual(nn.Module):
    """x + norm(up(down(x))): B T D -> B T D."""

    component_kind = "low_rank_residual"

    def __init__(self, spec: spec.LowRankResidual, context: BuildContext) -> None:
        super().__init__()
        self.down = Linear(context.d_model, spec.rank, bias=False)
        self.up = Linear(spec.rank, context.d_model, bias=False)
        self.norm = build_component(spec.norm, context)

    def sharding(self) -> Sharding:
        """Whole on every process: summing parts would send whole vectors to save two narrow matrices."""
        return Sharding()

    def forward(self, x: Tensor) -> Tensor:
        return x + self.norm(self.up(self.down(x)))


def _is_augmented(spec: blocks.BlockParts, context: BuildContext) -> bool:
    return spec.low_rank_residual is not None


@builds(blocks.PreNorm, when=_is_augmented)
class AugmentedPreNorm(PreNorm):
    """x + f(norm(x)) for each branch f, of which the first adds the augmented residual of norm(x)."""

    def __init__(self, spec: blocks.PreNorm, context: BuildContext) -> None:
        super().__init__(spec, context)
        assert spec.low_rank_residual is not None
        self.low_rank_residual = LowRankResidual(spec.low_rank_residual, context)

    def layer(self, x: Tensor, call: LayerCall) -> Tensor:
        x = wide(x)
        for name, branch in self.branches():
            read = self.norm_of(name)(x)
            output = branch(read, call)
            if name == self.branch_names[0]:
                output = output + self.low_rank_residual(read)
            x = self.joined(name, x, output)
        return x


@builds(SandwichSpec, when=_is_augmented)
class AugmentedSandwich(Sandwich):
    """x + norm(f(norm(x))) for each branch f, of which the first adds the augmented residual of norm(x)."""

    def __init__(self, spec: SandwichSpec, context: BuildContext) -> None:
        super().__init__(spec, context)
        assert spec.low_rank_residual is not None
        self.low_rank_residual = LowRankResidual(spec.low_rank_residual, context)

    def layer(self, x: Tensor, call: LayerCall) -> Tensor:
        x = wide(x)
        for name, branch in self.branches():
            read = self.norm_of(name)(x)
            output = self.norm_of(name, "output_norm")(branch(read, call))
            if name == self.branch_names[0]:
                output = output + self.low_rank_residual(read)
            x = self.joined(name, x, output)
        return x
