"""Heads that give masks of an image."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from pydantic import Field

from specs.base.base import Fault, RuleContext, Width
from specs.base.registry import register
from specs.base.roles import Role
from specs.base.words import WIDTHS, Output, PartContext, Step, product
from specs.kinds.activation import ACTIVATION_TITLES, Activation
from specs.kinds.head import HeadKind
from specs.kinds.norm import LayerNorm, Norm


@register("head")
class Masks(HeadKind):
    """A class and a mask of the image for each query of the stack (EoMT: Kerssies et al., 2025).

    Gives `class_queries_logits`, images x queries x (labels + 1), the last for no object, and `masks_queries_logits`, images x queries x
    rows x columns: products of a vector of the query with vectors of the image, whose rows and columns are doubled.
    """

    kind: Literal["masks"] = "masks"
    labels: Annotated[Width, Role.LABELS]
    """Number of classes, not counting the class of no object."""
    doublings: Annotated[int, Field(ge=0, le=8)] = 2
    """How often the rows and columns of the patches are doubled, each time by a matrix, an activation, a convolution and a norm."""
    activation: Activation = "gelu"
    """Activation of the doublings, and between the three layers that give the vector of a query."""
    norm: Norm = LayerNorm(eps=1e-6)
    """Norm after each doubling."""

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        yield Step("Classes of queries", "classes", (WIDTHS,))
        yield Output("Class logits", product("B", "queries", self.labels + 1))
        yield Step("Vectors of queries", "vector", ("three layers", ACTIVATION_TITLES[self.activation]))
        if self.doublings:
            yield Step("Rows and columns doubled", "doublings", (f"{self.doublings} times",))
        side = f"{2**self.doublings} " if self.doublings else ""
        yield Output("Mask logits", product("B", "queries", f"{side}rows", f"{side}columns"))

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        """The violated rules."""
        yield from (fault.under("norm") for fault in self.norm.faults(context))
        if not context.queries:
            rule = "requires queries in the stack"
            yield Fault(("kind",), rule, self.kind, "Add queries: {count: 200, layers: 4} to the encoder.")
