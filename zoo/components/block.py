"""Blocks: one layer of a stack.  Each forward is the formula of where the norms and residuals sit.

Where nothing normalises the stream it is kept in float32 at least.

Shapes: batch B, query length T, width D.
"""

from __future__ import annotations

from torch import Tensor, nn

import specs.block as spec
from zoo.components.attention import CrossAttention, KeyValue, Scope
from zoo.context import BuildContext
from zoo.precision import wide
from zoo.registry import build_component, builds


class Block(nn.Module):
    """What every block is made of.  ``encoded`` holds the encoder's keys and values where there is an encoder."""

    attention_norm: nn.Module
    attention_output_norm: nn.Module
    cross_attention_norm: nn.Module
    cross_attention_output_norm: nn.Module
    feed_forward_norm: nn.Module
    feed_forward_output_norm: nn.Module

    def __init__(self, spec: spec.BlockParts, context: BuildContext) -> None:
        super().__init__()
        self.attention = build_component(spec.attention, context)
        self.cross_attention: CrossAttention | None = None
        if context.cross:
            cross = spec.cross_attention or spec.attention
            self.cross_attention = CrossAttention(cross, context)  # type: ignore[arg-type]
            self.cross_attention.component_kind = cross.kind  # type: ignore[assignment]
        self.feed_forward = build_component(spec.feed_forward, context)
        self.residual = build_component(spec.residual, context)
        self.dropout = nn.Dropout(spec.dropout)

    def add_norms(self, spec: spec.BlockParts, context: BuildContext, suffix: str = "norm") -> None:
        """A norm for each branch, named after it."""
        branches = ["attention", *(["cross_attention"] if context.cross else []), "feed_forward"]
        for branch in branches:
            self.add_module(f"{branch}_{suffix}", build_component(spec.norm_of(branch), context))


@builds(spec.PreNorm)
class PreNorm(Block):
    """x + f(norm(x)) for each branch f."""

    def __init__(self, spec: spec.PreNorm, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.add_norms(spec, context)

    def forward(
        self, x: Tensor, scope: Scope, past: KeyValue | None = None, encoded: KeyValue | None = None
    ) -> tuple[Tensor, KeyValue]:
        x = wide(x)
        attended, present = self.attention(self.attention_norm(x), scope, past)
        x = self.residual(x, self.dropout(attended))
        if self.cross_attention is not None:
            x = self.residual(
                x, self.dropout(self.cross_attention(self.cross_attention_norm(x), scope, encoded))
            )
        x = self.residual(x, self.dropout(self.feed_forward(self.feed_forward_norm(x))))
        return x, present


@builds(spec.PostNorm)
class PostNorm(Block):
    """norm(x + f(x)) for each branch f."""

    def __init__(self, spec: spec.PostNorm, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.add_norms(spec, context)

    def forward(
        self, x: Tensor, scope: Scope, past: KeyValue | None = None, encoded: KeyValue | None = None
    ) -> tuple[Tensor, KeyValue]:
        attended, present = self.attention(x, scope, past)
        x = self.attention_norm(self.residual(x, self.dropout(attended)))
        if self.cross_attention is not None:
            crossed = self.cross_attention(x, scope, encoded)
            x = self.cross_attention_norm(self.residual(x, self.dropout(crossed)))
        x = self.feed_forward_norm(self.residual(x, self.dropout(self.feed_forward(x))))
        return x, present


@builds(spec.Parallel)
class Parallel(Block):
    """x + the sum of f(norm(x)) over all branches f, with one norm or one each."""

    def __init__(self, spec: spec.Parallel, context: BuildContext) -> None:
        super().__init__(spec, context)
        if spec.norms == "shared":
            self.norm = build_component(spec.norm, context)
            self.attention_norm = self.cross_attention_norm = self.feed_forward_norm = self.norm
        else:
            self.add_norms(spec, context)

    def forward(
        self, x: Tensor, scope: Scope, past: KeyValue | None = None, encoded: KeyValue | None = None
    ) -> tuple[Tensor, KeyValue]:
        x = wide(x)
        branches, present = self.attention(self.attention_norm(x), scope, past)
        if self.cross_attention is not None:
            branches = branches + self.cross_attention(self.cross_attention_norm(x), scope, encoded)
        branches = branches + self.feed_forward(self.feed_forward_norm(x))
        return self.residual(x, self.dropout(branches)), present


@builds(spec.BranchNorm)
class BranchNorm(Block):
    """x + norm(f(x)) for each branch f."""

    def __init__(self, spec: spec.BranchNorm, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.add_norms(spec, context)

    def forward(
        self, x: Tensor, scope: Scope, past: KeyValue | None = None, encoded: KeyValue | None = None
    ) -> tuple[Tensor, KeyValue]:
        x = wide(x)
        attended, present = self.attention(x, scope, past)
        x = self.residual(x, self.dropout(self.attention_norm(attended)))
        if self.cross_attention is not None:
            crossed = self.cross_attention(x, scope, encoded)
            x = self.residual(x, self.dropout(self.cross_attention_norm(crossed)))
        x = self.residual(x, self.dropout(self.feed_forward_norm(self.feed_forward(x))))
        return x, present


@builds(spec.Sandwich)
class Sandwich(Block):
    """x + norm(f(norm(x))) for each branch f."""

    def __init__(self, spec: spec.Sandwich, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.add_norms(spec, context)
        self.add_norms(spec, context, "output_norm")

    def forward(
        self, x: Tensor, scope: Scope, past: KeyValue | None = None, encoded: KeyValue | None = None
    ) -> tuple[Tensor, KeyValue]:
        x = wide(x)
        attended, present = self.attention(self.attention_norm(x), scope, past)
        x = self.residual(x, self.dropout(self.attention_output_norm(attended)))
        if self.cross_attention is not None:
            crossed = self.cross_attention(self.cross_attention_norm(x), scope, encoded)
            x = self.residual(x, self.dropout(self.cross_attention_output_norm(crossed)))
        fed = self.feed_forward(self.feed_forward_norm(x))
        x = self.residual(x, self.dropout(self.feed_forward_output_norm(fed)))
        return x, present
