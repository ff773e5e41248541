"""Specs whose outputs legitimately depend on little, so that a check for dependence would be meaningless."""

from __future__ import annotations

from collections.abc import Iterator

from specs.base.base import Component
from specs.model.model import Model


def why_insensitive(spec: Model) -> str:
    """Return the reason why the outputs of a spec need not depend on its inputs; empty where they must."""
    if spec.vocab_size == 1:
        return "the vocabulary has only one token"
    return next(filter(None, (part.why_insensitive(width) for part, width in _parts(spec))), "")


def _parts(spec: Model) -> Iterator[tuple[Component, int]]:
    """The parts that signals pass, with the width of each."""
    for _, stack in spec.stacks():
        width = spec.width_of(stack)
        for block in stack.layer_blocks():
            yield block, width
        yield spec.embedding_of(stack), width
        if stack.head is not None:
            yield stack.head, width
    yield spec.head, spec.embedding_width if spec.head.transforms_to_embedding else spec.output_width


def may_fade(spec: Model) -> str:
    """Return the reason why signals may vanish on their way through random weights; empty where they must not.

    Attention alone makes all tokens alike, doubly exponentially in depth (Dong et al., 2021).
    """
    blocks = [block for _, stack in spec.stacks() for block in stack.layer_blocks()]
    if any(block.residual_of(branch).is_none for block in blocks for branch in block.branches()):
        return "a signal was lost, which is expected: without residuals, attention makes all tokens alike"
    return ""
