"""The position of Shaw et al.: vectors of distances in every layer, compared with queries."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from specs.base.base import Fault, RuleContext
from specs.base.registry import register
from specs.base.words import PartContext
from specs.kinds.mixer import AttentionKind
from specs.kinds.position import PositionKind, equal_heads_faults

Reach = Annotated[int, Field(ge=0, le=2**20)]


@register("position")
class RelativeKey(PositionKind):
    """A trained vector per distance in every layer, as wide as a head and shared by its heads; scores add its product with the
    query (Shaw et al., 2018; wav2vec2-BERT)."""

    kind: Literal["relative_key"] = "relative_key"
    before: Reach = 64
    """Distance to keys before the query from which all share a vector."""
    after: Reach = 8
    """Distance to keys after the query from which all share a vector."""

    @property
    def owned_by_layers(self) -> bool:
        return True

    @property
    def read_outside_layers(self) -> bool:
        return True

    @property
    def tells_order(self) -> bool:
        return self.before + self.after > 0

    def details(self, context: PartContext) -> list[str]:
        return [f"distances {-self.before} to {self.after}", "compared with queries"]

    def attention_faults(self, attention: AttentionKind, context: RuleContext) -> Iterable[Fault]:
        return equal_heads_faults(self, attention)
