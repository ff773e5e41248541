"""Sums of blocks of tokens, whose keys and values all queries see."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from specs.base.base import Fault, RuleContext, Spec
from specs.base.roles import Role
from specs.kinds.norm import Norm

MOST = 64
"""The largest block: costs are polynomials in numbers of tokens that are multiples of it."""


class BlockSummaries(Spec):
    """Keys and values of blocks of successive tokens, which all queries see beside those in their window (transient global
    attention: Guo et al., 2021).

    The input of a block is the normed sum of the inputs of its tokens. Tokens after the last full block belong to it, and a text
    without a full block has none. Biases by the distance in blocks are trained beside those of the position.
    """

    size: Annotated[Annotated[int, Field(gt=0, le=MOST)], Role.WINDOW] = 16
    """Number of tokens in a block: a power of 2."""
    norm: Norm
    """Norm of the sums, of the width of the input."""

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        """The violated rules of the size, the norm, and the stack."""
        yield from (fault.under("norm") for fault in self.norm.faults(context))
        if self.size & (self.size - 1):
            below = 1 << (self.size.bit_length() - 1)
            yield Fault(("size",), "must be a power of 2", self.size, f"Use {below} or {2 * below}.")
        if context.context_length is not None and self.size > context.context_length:
            yield Fault(
                ("size",),
                f"must not exceed the context_length, which is {context.context_length}",
                self.size,
                "Use a smaller power of 2.",
            )
        if context.causal:
            yield Fault(
                (),
                "belong to an encoder, because a block holds tokens after those that see it",
                self.size,
                "Remove them.",
            )
        position = context.position
        if position is None or not position.biases_blocks:
            yield Fault(
                (),
                "require a position of kind relative_bias without gates, whose buckets are those of distances in blocks",
                None if position is None else position.kind,
                "Set position: {kind: relative_bias}, or remove them.",
            )
