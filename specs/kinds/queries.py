"""Queries: trained vectors that join the vectors of an image inside a stack."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from specs.base.base import Fault, RuleContext, Spec, Width
from specs.kinds.patch_positions import AxialRope


class Queries(Spec):
    """Trained vectors that join the vectors of an image, after them, before the last layers, each to find one thing (EoMT: Kerssies et
    al., 2025). The head `masks` reads them."""

    count: Width
    """Number of queries (EoMT: 200, or 100 for classes of every pixel)."""
    layers: Annotated[int, Field(gt=0, le=10_000)]
    """Number of layers that queries pass, the last of the stack (EoMT: 4)."""

    def faults(self, context: RuleContext, depth: int) -> Iterable[Fault]:
        """The violated rules of queries in a stack of ``depth`` layers."""
        if self.layers > depth:
            yield Fault(
                ("layers",),
                f"must be at most {depth}, the number of layers",
                self.layers,
                f"Use {depth} or fewer.",
            )
        if not context.patches or context.packed:
            yield Fault(
                (),
                "must join the patches of an image",
                "queries",
                "Use an embedding of patches, or remove them.",
            )
        elif not (
            context.position.embedded or context.position.is_none or isinstance(context.position, AxialRope)
        ):
            rule = "requires positions in the embedding or axial_rope, because queries have no place in the image"
            yield Fault((), rule, context.position.kind, "Use position: learned.")
