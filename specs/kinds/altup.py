"""Alternating updates: several residual streams, of which one passes the layers."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from specs.base.base import Fault, RuleContext, Spec
from specs.kinds.norm import Norm


class AltUp(Spec):
    """Alternating updates (AltUp; Baykal et al., 2023): each layer predicts all streams from those before it, passes the first
    through its branches, and corrects the others by what these changed."""

    streams: Annotated[int, Field(ge=2, le=64)]
    """Number of residual streams (Gemma 3n: 4)."""
    norm: Norm
    """Norm of what the coefficients of a layer are computed from."""

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        """The violated rules of the norm."""
        yield from (fault.under("norm") for fault in self.norm.faults(context))


class LowRankResidual(Spec):
    """A learned augmented residual (LAuReL; Menghani et al., 2024): n + norm(up(down(n))) for the normed input n of the first
    branch, added to the output of that branch."""

    rank: Annotated[int, Field(gt=0, le=2**24)]
    """Width between the two matrices (Gemma 3n: 64)."""
    norm: Norm
    """Norm of their product."""

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        """The violated rules of the norm."""
        yield from (fault.under("norm") for fault in self.norm.faults(context))
