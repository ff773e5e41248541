"""Weights that the layers of a block share, and the adapters in which they differ."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from specs.base.base import Component, Fault, Spec, Width
from specs.base.roles import Role
from specs.kinds.feed_forward import TwoLayer
from specs.kinds.mixer import AttentionKind


class Adapters(Spec):
    """Low-rank adapters (LoRA; Hu et al., 2021): to each shared projection, a layer adds a product of two narrow matrices of
    its own."""

    rank: Annotated[Width, Role.WIDTH]
    """Width between the two matrices of an adapter."""
    attention: bool = False
    """Whether the query, key and value projections have an adapter each."""
    feed_forward: bool = True
    """Whether the projections into the feed-forward have adapters; `gate` and `up` have the first matrix in common
    (Zamba 2)."""

    def faults(self, attention: AttentionKind | None, feed_forward: Component | None) -> Iterable[Fault]:
        """The violated rules, for the parts of a block."""
        if not (self.attention or self.feed_forward):
            yield Fault(
                ("feed_forward",),
                "must be true if attention is false, because no projection would have an adapter",
                False,
                "Set one of them, or remove adapters.",
            )
        if self.attention and attention is not None and not attention.has_own_values:
            rule = "must be false for an attention without a projection of keys and one of values"
            yield Fault(("attention",), rule, True, "Remove it.")
        by_heads = attention is not None and attention.projects_heads
        unfit = (
            ("attention", self.attention and not by_heads, "multi_head, grouped_query or multi_query"),
            ("feed_forward", self.feed_forward and not isinstance(feed_forward, TwoLayer), "mlp or gated"),
        )
        for key, is_unfit, names in unfit:
            if is_unfit:
                yield Fault(
                    (key,),
                    f"must be false unless the block has {key} of kind {names}",
                    True,
                    f"Set {key}: false, or change the {key} of the block.",
                )


class Sharing(Spec):
    """Weights of the attention, the feed-forward and their norms that the layers of a block share."""

    sets: Annotated[int, Field(ge=1)] = 1
    """Number of sets of weights, which the layers use in turn (Zamba 2: 2). At most as many as there are layers."""
    adapters: Adapters | None = None
    """Low-rank adapters, in which the layers of a set differ. Default: none."""

    def details(self, part: Literal["attention", "feed_forward"]) -> list[str]:
        """How layers share the weights of a part, and the rank of the adapters in which they differ."""
        sets = "shared by layers" if self.sets == 1 else f"{self.sets} shared sets in turn"
        if self.adapters is None:
            return [sets]
        adapted = self.adapters.attention if part == "attention" else self.adapters.feed_forward
        return [sets, f"adapters of rank {self.adapters.rank:,}"] if adapted else [sets]

    def faults(self, attention: AttentionKind | None, feed_forward: Component | None) -> Iterable[Fault]:
        """The violated rules, for the parts of a block."""
        if attention is None and feed_forward is None:
            yield Fault(
                (),
                "must not be set in a block without attention and feed_forward, which are what layers share",
                None,
                "Remove it, or share whole layers with shared: true in layers.",
            )
        elif self.adapters is not None:
            yield from (fault.under("adapters") for fault in self.adapters.faults(attention, feed_forward))
