"""Which tokens see which: a causal stack looks back only, a bidirectional one both ways; and order matters."""

from __future__ import annotations

import torch

from zoo.checks.dependence import depends
from zoo.checks.result import Check, equal, skipped
from zoo.checks.side import Side, another, apart, draw_ids
from zoo.checks.subject import Subject

_ONE_TOKEN = "context_length allows one token"
_ALONE = "windows of one token let each see itself only"


def causal(side: Side, subject: Subject) -> Check:
    """Whether outputs are the same up to where the tokens are."""
    name = f"{side.prefix}causal"
    explanation = "outputs of earlier tokens do not change when the tokens after them are replaced"
    if side.length < 2:
        return skipped(name, explanation, _ONE_TOKEN)
    if side.vocabulary < 2:
        return skipped(name, explanation, "the vocabulary has one token")
    half = side.length // 2
    return equal(name, _change(side, slice(half, None), slice(half)), explanation)


def sees_the_past(side: Side, subject: Subject) -> Check:
    """Whether outputs depend on tokens before theirs."""
    name = f"{side.prefix}sees the past"
    explanation = "outputs of later tokens change when the first token is replaced"
    if side.length < 2:
        return skipped(name, explanation, _ONE_TOKEN)
    return depends(name, subject, lambda: _change(side, slice(1), slice(1, None)), explanation, _excuse(side))


def bidirectional(side: Side, subject: Subject) -> Check:
    """Whether outputs depend on tokens before and after theirs."""
    name = f"{side.prefix}bidirectional"
    explanation = (
        "outputs of earlier tokens change when the last is replaced, and of later ones when the first is"
    )
    if side.length < 2:
        return skipped(name, explanation, _ONE_TOKEN)

    def change() -> float:
        return min(_change(side, slice(-1, None), slice(-1)), _change(side, slice(1), slice(1, None)))

    return depends(name, subject, change, explanation, _excuse(side))


def _excuse(side: Side) -> str:
    return _ALONE if side.alone else ""


def _change(side: Side, replaced: slice, seen: slice) -> float:
    """How far the outputs at the tokens ``seen`` move when those ``replaced`` are others."""
    ids = draw_ids(1, side.length, side.vocabulary)
    changed = ids.clone()
    changed[:, replaced] = another(ids[:, replaced], side.vocabulary)
    both = side.read(torch.cat((ids, changed)), None, None).tokens
    return apart([x[:1, seen] for x in both], [x[1:, seen] for x in both])


def order(side: Side, subject: Subject) -> Check:
    """Whether the outputs know where a token stands."""
    name = f"{side.prefix}order"
    explanation = "outputs are not merely swapped along when the first two tokens are swapped"
    if side.length < 3:
        return skipped(name, explanation, f"context_length allows {side.length} tokens, and this takes 3")

    def change() -> float:
        ids = draw_ids(1, side.length, side.vocabulary)
        swap = [1, 0, *range(2, side.length)]
        both = side.read(torch.cat((ids, ids[:, swap])), None, None).tokens
        return apart([x[:1, swap] for x in both], [x[1:] for x in both])

    if not side.ordered and not side.causal:
        explanation = "without positions, a bidirectional stack sees a set: swapped tokens swap their outputs"
        return Check(name, "info", explanation, change())
    return depends(name, subject, change, explanation, _excuse(side))
