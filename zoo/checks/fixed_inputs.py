"""Checks of a stack that reads images or audio."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from specs.kinds.mixer import AttentionKind
from zoo.checks.dependence import depends
from zoo.checks.finite import not_finite, tensors_of
from zoo.checks.result import Check, equal, skipped
from zoo.checks.stack_runner import StackOutput, StackRunner, relative_difference
from zoo.checks.subject import CheckedModel

_SKIPPED = "for this embedding, the part of the input that each vector sees is unknown"


def bidirectional(side: StackRunner, subject: CheckedModel) -> Check:
    """Check that outputs depend on the input before and after their own part."""
    name = f"{side.prefix}bidirectional"
    explanation = (
        "the first output changes when the end of the input is replaced, and the last when the beginning is"
    )
    ends = side.embedding.ends(side.length)
    if ends is None:
        return skipped(name, explanation, _SKIPPED)
    if side.length < 2:
        return skipped(name, explanation, "an input gives only one vector")
    if side.causal:
        return skipped(name, explanation, "the spec is causal: vectors see only earlier ones")
    if _reach(side) < side.length - 1:
        return skipped(name, explanation, "the windows of all layers combined do not span an input")

    def change() -> float:
        inputs, others = side.draw(1, 0), side.draw(1, 1)
        changed = []
        for end in ends:
            changed.append(inputs.clone())
            changed[-1][end] = others[end]
        read = side.read(torch.cat((inputs, *changed)), None, None).tokens
        last = relative_difference([x[:1, -1] for x in read], [x[1:2, -1] for x in read])
        first = relative_difference([x[:1, 0] for x in read], [x[2:, 0] for x in read])
        return min(first, last)

    return depends(name, subject, change, explanation)


def _reach(side: StackRunner) -> int:
    """Return the distance over which the stack's outputs see: the sum of the windows of its layers."""
    attentions = (block.attention for block in side.stack.layer_blocks())
    return sum(
        side.length if attention is None else _span(attention, side.length) for attention in attentions
    )


def _span(attention: AttentionKind, length: int) -> int:
    """The distance over which an attention sees; separate windows of patches carry nothing beyond their borders."""
    if (separate := attention.separate_window) is not None and separate < length:
        return 0
    return length if attention.sliding_window is None else attention.sliding_window // 2


def order(side: StackRunner, subject: CheckedModel) -> Check:
    """Check that outputs depend on the positions of patches."""
    name = f"{side.prefix}order"
    explanation = "swapping the first two patches of an image does more than swap their outputs"
    embedding = side.embedding
    if embedding.sees_order:
        return skipped(name, explanation, "convolutions over time see the order even without positions")
    if embedding.neighbours is None:
        return skipped(name, explanation, _SKIPPED)
    first = embedding.tokens_before
    if side.length < first + 2:
        return skipped(name, explanation, "an image has only one patch")
    if side.alone:
        return skipped(name, explanation, "with windows of one patch, each patch sees only itself")
    one, other = embedding.neighbours

    def change() -> float:
        image = side.draw(1, 0)
        swapped = image.clone()
        swapped[one], swapped[other] = image[other], image[one]
        read = side.read(torch.cat((image, swapped)), None, None).tokens
        places = [*range(first), first + 1, first, *range(first + 2, side.length)]
        return relative_difference([x[:1, places] for x in read], [x[1:] for x in read])

    if not side.ordered:
        explanation = "without positions, an image is a set of patches: swapping patches swaps their outputs"
        return Check(name, "info", explanation, change())
    return depends(name, subject, change, explanation)


def batch(side: StackRunner, subject: CheckedModel) -> Check:
    """Check that a row's outputs do not depend on the other rows."""
    explanation = "each row of a batch gives the outputs that it gives alone"
    inputs = side.draw(2, 0)
    together = side.read(inputs, None, None)
    alone = [side.read(row[None], None, None) for row in inputs]
    rows: list[Callable[[StackOutput], tuple[Tensor, ...]]] = [lambda r: r.tokens, lambda r: r.sequences]
    differences = [
        relative_difference(
            of(together), [torch.cat(outputs) for outputs in zip(*map(of, alone), strict=True)]
        )
        for of in rows
    ]
    return equal(f"{side.prefix}batch", max(differences), explanation)


def padding(side: StackRunner, subject: CheckedModel) -> Check:
    """Check that outputs do not depend on padding, where the model takes a mask."""
    name, explanation = (
        f"{side.prefix}padding",
        "outputs of real inputs depend neither on padding nor on its content",
    )
    if not side.embedding.takes_mask:
        return skipped(name, explanation, "the model takes no mask")
    inputs, others = side.draw(2, 0), side.draw(2, 1)
    short = (side.length + 1) // 2
    count = side.embedding.input_length(short)
    mask = torch.ones(inputs.shape[:2], dtype=torch.int64)
    mask[1, count:] = 0
    real = mask.unflatten(1, (-1, *(1 for _ in inputs.shape[2:])))
    whole, alone = side.read(inputs[:1], None, None), side.read(inputs[1:, :count], None, None)
    differences = []
    for padded in (inputs, torch.where(real == 1, inputs, others)):
        together = side.read(padded, mask, None)
        for row, (own, length) in enumerate(((whole, side.length), (alone, short))):
            differences += [
                relative_difference([x[row : row + 1, :length] for x in together.tokens], own.tokens),
                relative_difference([x[row : row + 1] for x in together.sequences], own.sequences),
            ]
    return equal(name, max(differences), explanation)


def finite(side: StackRunner, subject: CheckedModel) -> Check:
    """Check that all outputs are finite, also for an input of zeros."""
    inputs = side.draw(2, 0)
    inputs[1] = 0
    count = sum(not_finite(tensor) for tensor in tensors_of(side.read(inputs, None, None)))
    explanation = "no output is NaN or infinite, even for an input of zeros"
    return Check(f"{side.prefix}finite", "failed" if count else "passed", explanation, count, "0 values")
