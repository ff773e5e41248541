"""Which tokens see which: a causal stack looks back only, a bidirectional one both ways; and order matters."""

from __future__ import annotations

import torch

from zoo.checks.dependence import depends
from zoo.checks.result import Check, equal, skipped
from zoo.checks.stack_runner import StackRunner, another, draw_ids, relative_difference
from zoo.checks.subject import CheckedModel

_ONE_TOKEN = "context_length allows only one token"
_ALONE = "with windows of one token, each token sees only itself"


def causal(side: StackRunner, subject: CheckedModel) -> Check:
    """Check that outputs do not depend on later tokens."""
    name = f"{side.prefix}causal"
    explanation = "outputs do not change when later tokens are replaced"
    if side.length < 2:
        return skipped(name, explanation, _ONE_TOKEN)
    if side.vocabulary < 2:
        return skipped(name, explanation, "the vocabulary has only one token")
    half = side.length // 2
    return equal(name, _change(side, slice(half, None), slice(half)), explanation)


def sees_the_past(side: StackRunner, subject: CheckedModel) -> Check:
    """Check that outputs depend on earlier tokens."""
    name = f"{side.prefix}sees the past"
    explanation = "outputs of later tokens change when the first token is replaced"
    if side.length < 2:
        return skipped(name, explanation, _ONE_TOKEN)
    return depends(name, subject, lambda: _change(side, slice(1), slice(1, None)), explanation, _excuse(side))


def bidirectional(side: StackRunner, subject: CheckedModel) -> Check:
    """Check that outputs depend on earlier and on later tokens."""
    name = f"{side.prefix}bidirectional"
    explanation = (
        "earlier outputs change when the last token is replaced, and later outputs when the first token is"
    )
    if side.length < 2:
        return skipped(name, explanation, _ONE_TOKEN)

    def change() -> float:
        return min(_change(side, slice(-1, None), slice(-1)), _change(side, slice(1), slice(1, None)))

    return depends(name, subject, change, explanation, _excuse(side))


def within_images(side: StackRunner, subject: CheckedModel) -> Check:
    """Check that the first vector of an image depends on the last one."""
    name = f"{side.prefix}bidirectional within images"
    explanation = "the output of an image's first vector changes when its last vector is replaced"
    if side.length < 2:
        return skipped(name, explanation, _ONE_TOKEN)
    if side.vocabulary < 2:
        return skipped(name, explanation, "the vocabulary has only one token of text")
    read_as_image = side.read_as_image
    assert read_as_image is not None

    def change() -> float:
        ids = draw_ids(1, side.length, side.vocabulary).expand(2, -1).clone()
        ids[1, -1] = another(ids[1, -1], side.vocabulary)
        hidden = read_as_image(ids)
        return relative_difference([hidden[:1, 0]], [hidden[1:, 0]])

    return depends(name, subject, change, explanation)


def _excuse(side: StackRunner) -> str:
    return _ALONE if side.alone else ""


def _change(side: StackRunner, replaced: slice, seen: slice) -> float:
    """The change of the outputs at the tokens ``seen`` when the ``replaced`` tokens change."""
    ids = draw_ids(1, side.length, side.vocabulary)
    changed = ids.clone()
    changed[:, replaced] = another(ids[:, replaced], side.vocabulary)
    both = side.read(torch.cat((ids, changed)), None, None).tokens
    return relative_difference([x[:1, seen] for x in both], [x[1:, seen] for x in both])


def order(side: StackRunner, subject: CheckedModel) -> Check:
    """Check that outputs depend on the order of tokens."""
    name = f"{side.prefix}order"
    explanation = "swapping the first two tokens does more than swap their outputs"
    if side.length < 3:
        return skipped(name, explanation, f"context_length allows {side.length} tokens; this check needs 3")

    def change() -> float:
        ids = draw_ids(1, side.length, side.vocabulary)
        swap = [1, 0, *range(2, side.length)]
        both = side.read(torch.cat((ids, ids[:, swap])), None, None).tokens
        return relative_difference([x[:1, swap] for x in both], [x[1:] for x in both])

    if not side.ordered and not side.causal:
        explanation = (
            "without positions, a bidirectional stack sees a set: swapping tokens swaps their outputs"
        )
        return Check(name, "info", explanation, change())
    return depends(name, subject, change, explanation, _excuse(side))
