"""Feed-forwards side by side."""

import re
from collections.abc import Iterable
from typing import ClassVar, Literal

from specs.base.base import Component, Fault, RuleContext, Spec
from specs.base.registry import register
from specs.base.words import PartContext
from specs.kinds.feed_forward import FeedForward
from specs.kinds.norm import Norm


class NormedFeedForward(Spec):
    """A feed-forward between two norms: output_norm(feed_forward(norm(x)))."""

    norm: Norm
    """Norm of the input."""
    feed_forward: FeedForward
    """The feed-forward network."""
    output_norm: Norm
    """Norm of the output."""


@register("feed_forward")
class SideBySide(Component):
    """Feed-forwards that read the same input, and whose outputs are added (Gemma 4: one beside a mixture of experts)."""

    kind: Literal["side_by_side"] = "side_by_side"
    title: ClassVar[str] = "Feed-forwards side by side"
    branches: dict[str, NormedFeedForward]
    """The feed-forwards by name, each with its norms; a name has lowercase letters and `_` only."""
    output_norm: Norm
    """Norm of the sum."""

    def details(self, context: PartContext) -> list[str]:
        parts = (branch.feed_forward for branch in self.branches.values())
        return [detail for part in parts for detail in part.branch_details(context)]

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if len(self.branches) < 2:
            yield Fault(
                ("branches",),
                "must be at least two, whose outputs are added",
                list(self.branches),
                "Add a branch, or use mlp, gated or mixture.",
            )
        for name in self.branches:
            if not re.fullmatch("[a-z][a-z_]*", name):
                yield Fault(
                    ("branches", name),
                    "must have a name of lowercase letters and _, which becomes part of the names of weights",
                    name,
                    "Rename it, as in dense or experts.",
                )
        yield from (fault.under("output_norm") for fault in self.output_norm.faults(context))
        for name, branch in self.branches.items():
            for key, part in branch:
                yield from (fault.under("branches", name, key) for fault in part.faults(context))
