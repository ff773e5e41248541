"""Blocks that place norms and residuals otherwise than :class:`zoo.components.block.PreNorm`.

Shapes: batch B, query length T, width D.
"""

from __future__ import annotations

from torch import Tensor

import specs.kinds.norm_placements as spec
from specs.kinds.block import PostNorm as PostNormSpec
from zoo.components.attention_variations import VariedProjections
from zoo.components.block import Block, LayerCall
from zoo.context import BuildContext
from zoo.core.precision import wide
from zoo.registry import build_component, builds


def normalized_sinks(block: Block) -> dict[str, str]:
    """The sinks that do nothing but scale the output of an attention, which a norm follows."""
    reason = "sinks of single heads, which scale an output that is normalized next"
    children = block.named_children()
    return {
        f"{name}.sinks": reason
        for name, child in children
        if isinstance(child, VariedProjections) and child.is_scaled_by_sinks
    }


@builds(PostNormSpec)
class PostNorm(Block):
    """norm(x + f(x)) for each branch f."""

    def __init__(self, spec: PostNormSpec, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.add_norms(spec, context)

    def layer(self, x: Tensor, call: LayerCall) -> Tensor:
        for name, branch in self.branches():
            x = self.norm_of(name)(self.joined(name, x, branch(x, call)))
        return x


@builds(spec.Parallel)
class Parallel(Block):
    """x + the sum of f(norm(x)) over all branches f, with one norm or one each."""

    def __init__(self, spec: spec.Parallel, context: BuildContext) -> None:
        super().__init__(spec, context)
        if spec.norms == "shared":
            self.norm = build_component(spec.norm, context)
            for name in self.branch_names:
                self.add_module(f"{name}_norm", self.norm)
        else:
            self.add_norms(spec, context)

    def layer(self, x: Tensor, call: LayerCall) -> Tensor:
        x = wide(x)
        (name, branch), *others = self.branches()
        total = self.scaled(name, branch(self.norm_of(name)(x), call))
        for name, branch in others:
            total = total + self.scaled(name, branch(self.norm_of(name)(x), call))
        return self.residual(x, self.dropout(total))


@builds(spec.ReorderedNorm)
class ReorderedNorm(Block):
    """x + norm(f(x)) for each branch f."""

    def __init__(self, spec: spec.ReorderedNorm, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.add_norms(spec, context)

    def without_gradient(self) -> dict[str, str]:
        return normalized_sinks(self)

    def layer(self, x: Tensor, call: LayerCall) -> Tensor:
        x = wide(x)
        for name, branch in self.branches():
            x = self.joined(name, x, self.norm_of(name)(branch(x, call)))
        return x


@builds(spec.Sandwich)
class Sandwich(Block):
    """x + norm(f(norm(x))) for each branch f."""

    def __init__(self, spec: spec.Sandwich, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.add_norms(spec, context)
        self.add_norms(spec, context, "output_norm")

    def without_gradient(self) -> dict[str, str]:
        return normalized_sinks(self)

    def layer(self, x: Tensor, call: LayerCall) -> Tensor:
        x = wide(x)
        for name, branch in self.branches():
            mixed = branch(self.norm_of(name)(x), call)
            x = self.joined(name, x, self.norm_of(name, "output_norm")(mixed))
        return x


@builds(spec.NormedResidual)
class NormedResidual(Block):
    """norm(x) + f(norm(x)) for each branch f."""

    def __init__(self, spec: spec.NormedResidual, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.add_norms(spec, context)

    def layer(self, x: Tensor, call: LayerCall) -> Tensor:
        for name, branch in self.branches():
            x = self.norm_of(name)(x)
            x = self.joined(name, x, branch(x, call))
        return x
