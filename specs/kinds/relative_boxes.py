"""The position of BROS: where tokens are on their page relative to each other, compared with queries."""

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.base import Fault, RuleContext
from specs.base.registry import register
from specs.base.words import PartContext
from specs.kinds.embedding import CORNERS
from specs.kinds.mixer import AttentionKind
from specs.kinds.position import PositionKind, equal_heads_faults


@register("position")
class RelativeBoxes(PositionKind):
    """Sines and cosines of the differences of the corners of two boxes, through a matrix to the width of a head; scores add their product
    with the query (BROS: Hong et al., 2022).

    For an attention, as its `position`, in an encoder whose embedding has `corners`.
    """

    kind: Literal["relative_boxes"] = "relative_boxes"
    theta: Annotated[float, Field(gt=1)] = 10_000.0
    """Base of the wavelengths."""

    reads_second: ClassVar[bool] = True

    @property
    def tells_order(self) -> bool:
        return False

    def details(self, context: PartContext) -> list[str]:
        return ["corners of boxes", "compared with queries"]

    def attention_faults(self, attention: AttentionKind, context: RuleContext) -> Iterable[Fault]:
        if context.second_width != CORNERS:
            yield Fault(
                ("kind",),
                "requires an embedding with corners",
                self.kind,
                "Add corners: 100 to the embedding.",
            )
        yield from equal_heads_faults(self, attention)
        if context.d_model % (8 * CORNERS):
            yield Fault(
                ("kind",),
                f"requires a d_model that {8 * CORNERS} divides, and it is {context.d_model}",
                self.kind,
                f"Use {max(context.d_model // (8 * CORNERS), 1) * 8 * CORNERS}.",
            )
