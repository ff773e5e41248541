"""Trained biases of scores by relative position."""

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.base import Fault, OmitDefault, RuleContext
from specs.base.registry import register
from specs.base.words import PartContext
from specs.kinds.mixer import AttentionKind
from specs.kinds.position import PositionKind


@register("position")
class RelativeBias(PositionKind):
    """A trained bias on the scores per head and distance bucket, shared by the layers of a stack unless `per_layer` (T5)."""

    kind: Literal["relative_bias"] = "relative_bias"
    title: ClassVar[str] = "Relative bias"
    buckets: Annotated[int, Field(ge=2, le=2**16)] = 32
    """Number of buckets: one per short distance, and buckets of logarithmic width for longer ones."""
    max_distance: Annotated[int, Field(gt=0, le=2**20)] = 128
    """Distance in tokens beyond which all share the last bucket."""
    gated: Annotated[bool, OmitDefault()] = False
    """Whether each layer multiplies the bias of a query by a gate from 1 up, which it computes from that query's part of the
    input (WavLM)."""
    per_layer: Annotated[bool, OmitDefault()] = False
    """Whether every layer has its own biases (UMT5)."""
    needs_equal_heads: ClassVar[bool] = True

    @property
    def owned_by_layers(self) -> bool:
        return self.per_layer

    @property
    def biases_blocks(self) -> bool:
        return not self.gated

    @property
    def gates_layers(self) -> bool:
        return self.gated

    @property
    def farthest(self) -> int:
        return self.max_distance

    def details(self, context: PartContext) -> list[str]:
        return [f"{self.buckets} buckets", f"distance < {self.max_distance}", "added to scores"]

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        sides = self.buckets if context.causal else self.buckets // 2
        if sides < 2:
            yield Fault(
                ("buckets",),
                "must be at least 4 in a bidirectional stack: near and far distances on either side",
                self.buckets,
                "Use 4 or more.",
            )
            return
        exact = sides // 2
        if self.max_distance <= exact:
            yield Fault(
                ("max_distance",),
                f"must exceed {exact}, the number of distances with their own bucket",
                self.max_distance,
                f"Use {exact + 1} or more.",
            )

    def attention_faults(self, attention: AttentionKind, context: RuleContext) -> Iterable[Fault]:
        if not self.gated:
            return
        if not attention.projects_heads:
            yield Fault(
                ("gated",),
                "requires attention whose heads divide its input, and those of latent attention do not",
                attention.kind,
                "Remove it, or use multi_head or grouped_query.",
            )
        elif attention.position_heads * attention.head_width(context.d_model) != context.d_model:
            yield Fault(
                ("gated",),
                f"requires heads that divide the input, whose width is {context.d_model}",
                f"{attention.position_heads} heads of width {attention.head_width(context.d_model)}",
                "Remove it, or remove head_dim.",
            )
