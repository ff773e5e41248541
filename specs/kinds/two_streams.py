"""Blocks that pass a second stream beside the first."""

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar, Literal

from specs.base.base import DescribedSpec, Fault, RuleContext, default_faults
from specs.base.registry import register
from specs.base.words import PartContext
from specs.kinds.attention import MultiHead
from specs.kinds.block import BRANCH_OPTIONS, BlockParts
from specs.kinds.feed_forward import FeedForward
from specs.kinds.mixer import Attention


@register("block")
class TwoStreams(BlockParts):
    """Post-norm branches of two streams, whose attentions add their scores to each other's: norm(x + f(x)) for each branch f and stream
    (LiLT: Wang et al., 2022).

    The second stream is that of the embedding, such as `layout`. Its attention has as many heads, and its norms are like those of the first.
    """

    kind: Literal["two_streams"] = "two_streams"
    attention: Attention
    """Self-attention of each stream, the first branch. A head of the second stream is as wide as its width divided by `heads`."""
    feed_forward: FeedForward
    """Feed-forward network of the first stream."""
    second_feed_forward: FeedForward
    """Feed-forward network of the second stream."""
    output_is_normalised: ClassVar[bool] = True
    passes_second: ClassVar[bool] = True

    def part_of(self, name: str) -> DescribedSpec | None:
        return self.attention if name == "attention.second" else super().part_of(name)

    def part_context(self, name: str, context: PartContext) -> PartContext:
        if name not in ("attention.second", "second_feed_forward"):
            return context
        assert context.second_width is not None
        return replace(context, width=context.second_width)

    def added_details(self, name: str) -> list[str]:
        return ["scores of both streams added"] if name.startswith("attention") else []

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from super().faults(context)
        if context.second_width is None:
            rule, remedy = (
                "needs an embedding with a second stream",
                "Add layout to the embedding, or use post_norm.",
            )
            yield Fault(("kind",), rule, self.kind, remedy)
            return
        if context.causal:
            yield Fault(("kind",), "belongs to an encoder", self.kind, "Use post_norm.")
        if not (context.position.embedded or context.position.is_none):
            rule = "requires positions in the embedding"
            yield Fault(("kind",), rule, context.position.kind, "Use position: learned, or post_norm.")
        second = replace(context, d_model=context.second_width)
        yield from (fault.under("second_feed_forward") for fault in self.second_feed_forward.faults(second))
        yield from self._attention_faults(context.second_width)
        yield from default_faults(self, BRANCH_OPTIONS, "must not be set in a block of two streams")

    def _attention_faults(self, width: int) -> Iterable[Fault]:
        """An attention that is not the same in both streams but for its width."""
        attention = self.attention
        same = {"kind", "heads", "head_dim", "bias", "scale", "dropout"}
        if not isinstance(attention, MultiHead):
            yield Fault(
                ("attention", "kind"),
                "must be multi_head in a block of two streams",
                attention.kind,
                "Use multi_head.",
            )
            return
        rule = "must not be set in a block of two streams"
        faults = [*default_faults(attention, sorted(MultiHead.model_fields.keys() - same), rule)]
        yield from (fault.under("attention") for fault in faults)
        if not faults and width % attention.heads:
            yield Fault(
                ("attention", "heads"),
                f"must divide the width of the second stream, which is {width}",
                attention.heads,
                "Use a divisor of both widths.",
            )
