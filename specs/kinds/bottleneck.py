"""Blocks that are narrower inside than the residual stream."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.base import Fault, RuleContext, Width, default_faults
from specs.base.registry import register
from specs.base.roles import Role
from specs.kinds.attention import MultiHeadShape
from specs.kinds.block import BRANCH_OPTIONS, BlockParts
from specs.kinds.feed_forward import FeedForward
from specs.kinds.mixer import Attention


@register("block")
class Bottleneck(BlockParts):
    """A block of post-norm branches in a narrower stream, between a matrix into it and one out of it (MobileBERT: Sun et al., 2020).

    Queries, keys and an output gate read the input through a matrix of their own; values read it as it is. Each matrix has a norm after it.
    """

    kind: Literal["bottleneck"] = "bottleneck"
    width: Annotated[Width, Role.WIDTH]
    """Width of the narrower stream (MobileBERT: 128)."""
    feed_forwards: Annotated[int, Field(gt=0, le=2**6)] = 1
    """Number of feed-forwards in a row, each with its norm (MobileBERT: 4)."""
    attention: Attention
    """Self-attention, the first branch."""
    feed_forward: FeedForward
    """Feed-forward network, each of the other branches."""
    output_is_normalised: ClassVar[bool] = True

    def branch_width(self, d_model: int) -> int:
        return self.width

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from super().faults(replace(context, d_model=self.width))
        yield from default_faults(self, BRANCH_OPTIONS, "must not be set in a bottleneck")
        if not isinstance(self.attention, MultiHeadShape):
            rule = "must project queries, keys and values by heads in a bottleneck"
            remedy = "Use multi_head, grouped_query or multi_query."
            yield Fault(("attention", "kind"), rule, self.attention.kind, remedy)
        elif self.attention.values == "keys":
            rule = "must be projected in a bottleneck, whose keys read another input"
            yield Fault(("attention", "values"), rule, "keys", "Remove it.")
        elif (self.attention.position or context.position).gates_layers:
            rule = "must not have a gated position in a bottleneck, whose queries and values read different inputs"
            yield Fault(("attention",), rule, self.attention.kind, "Set gated: false in the position.")
        if context.causal:
            yield Fault(("kind",), "belongs to an encoder", self.kind, "Use post_norm.")
