"""Resamplers: trained queries that become the vectors of an image."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, Self

from pydantic import Field

from specs.base.base import Fault, RuleContext, Spec
from specs.base.registry import register
from specs.base.words import PartContext, Step
from specs.kinds.connector import ConnectorKind
from specs.kinds.feed_forward import FeedForward, TwoLayer
from specs.kinds.mixer import Attention
from specs.kinds.norm import Norm
from specs.kinds.pooling import trained_query_faults


class ResamplerBlock(Spec):
    """One layer of a resampler: x + f(norm(x)) for attention and feed-forward."""

    norm: Norm
    """Norm before the attention, of queries and of vectors apart, and before the feed-forward; also the last norm of the
    connector."""
    attention: Attention
    """Attention of the queries to the vectors and to themselves, together: a kind with heads, without window or position."""
    feed_forward: FeedForward
    """Feed-forward of the queries."""

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        """The violated rules of its parts."""
        return trained_query_faults(self.attention, self.norm, self.feed_forward, context)


@register("connector")
class ResamplerConnector(ConnectorKind):
    """Trained queries that attend to the projected vectors of an image, of which every query becomes one (perceiver resampler:
    Alayrac et al., 2022; Idefics 2: Laurençon et al., 2024)."""

    kind: Literal["resampler"] = "resampler"
    projection: FeedForward
    """Projection of the vectors to the width of the tokens: `mlp` or `gated`."""
    queries: Annotated[int, Field(ge=1, le=2**16)]
    """Number of queries, and of the vectors of an image."""
    layers: Annotated[int, Field(ge=1, le=256)]
    """Number of layers, each of which attends to the same vectors."""
    block: ResamplerBlock
    """Norm, attention and feed-forward of every layer."""

    @property
    def takes_any_size(self) -> bool:
        return False

    def vector_count(self, patches: int, others: int) -> int:
        return self.queries

    def of_fewer_vectors(self, count: int) -> Self:
        return self.model_copy(update={"queries": min(self.queries, count)})

    def steps(self, context: PartContext) -> Iterator[Step]:
        projected = self.projection.details(context)
        yield Step(self.projection.heading, "projection", tuple(projected), "feed-forward")
        attention = self.block.attention.details(PartContext(context.width, cross=True))
        details = (
            f"{self.queries:,} queries",
            f"{self.layers} layer{'s' * (self.layers > 1)}",
            *attention,
            self.block.feed_forward.brief,
        )
        yield Step(self.heading, "", details)

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        yield from super().faults(context)
        if not isinstance(self.projection, TwoLayer):
            yield Fault(
                ("projection", "kind"),
                "must be mlp or gated, which also map from one width to another",
                self.projection.kind,
                "Use mlp.",
            )
        yield from (fault.under("projection") for fault in self.projection.faults(context))
        yield from (fault.under("block") for fault in self.block.faults(context))
