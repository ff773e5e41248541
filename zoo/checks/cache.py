"""A cache must not matter: a decoder that reads its tokens in pieces says what it says in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from zoo.checks.padding import Where, padded, rows_of_all_lengths
from zoo.checks.result import Check, equal, skipped
from zoo.checks.side import Reading, Side, apart, draw_ids
from zoo.checks.subject import Subject
from zoo.components.attention import KeyValue

_ONE_TOKEN = "context_length allows one token"


def token_by_token(side: Side, subject: Subject) -> Check:
    """Whether single steps come to one pass."""
    name = f"{side.prefix}cache, token by token"
    explanation = "outputs and cache of one token at a time through the cache equal those of all at once"
    if side.length < 2:
        return skipped(name, explanation, _ONE_TOKEN)
    ids = draw_ids(1, side.length, side.vocabulary)
    whole, steps = side.read(ids, None, None), _read_in_pieces(side, ids, None, range(side.length + 1))
    return equal(
        name,
        max(apart(whole.tokens, steps.tokens), apart(_flat(whole.cache), _flat(steps.cache))),
        explanation,
    )


def prefill_and_steps(side: Side, subject: Subject) -> Check:
    """Whether a ragged batch, prefilled and continued, comes to one pass."""
    name = f"{side.prefix}cache, ragged prefill"
    explanation = (
        "a batch padded on the left, or between prompt and steps, read as a prefill, a pair and single tokens "
        "gives what it gives at once"
    )
    if side.length < 2:
        return skipped(name, explanation, _ONE_TOKEN)
    rows, half = rows_of_all_lengths(side), side.length // 2
    cuts = [0, half, *range(min(half + 2, side.length), side.length + 1)]
    differences: list[float] = []
    sides: tuple[Where, ...] = ("left", "inside")
    for where in sides:
        ids, mask = padded(rows, where, extra=0)
        whole, pieces = side.read(ids, mask, None), _read_in_pieces(side, ids, mask, cuts)
        differences += [
            apart(_real(whole.tokens, mask), _real(pieces.tokens, mask)),
            apart(_real(_per_token(whole.cache), mask), _real(_per_token(pieces.cache), mask)),
        ]
    return equal(name, max(differences), explanation)


def empty_cache(side: Side, subject: Subject) -> Check:
    """Whether a cache that holds nothing is none."""
    explanation = "a cache of length 0 gives what no cache gives"
    ids = draw_ids(1, side.length, side.vocabulary)
    without = side.read(ids, None, None)
    empty = [(key[:, :, :0], value[:, :, :0]) for key, value in without.cache]
    return equal(
        f"{side.prefix}cache, empty", apart(without.tokens, side.read(ids, None, empty).tokens), explanation
    )


def _read_in_pieces(side: Side, ids: Tensor, mask: Tensor | None, cuts: Iterable[int]) -> Reading:
    """The tokens between consecutive cuts, each piece with the cache of those before, put together again."""
    readings: list[Reading] = []
    cache: Sequence[KeyValue] | None = None
    for start, end in pairwise(cuts):
        readings.append(side.read(ids[:, start:end], None if mask is None else mask[:, :end], cache))
        cache = readings[-1].cache
    tokens = tuple(torch.cat(each, 1) for each in zip(*(reading.tokens for reading in readings), strict=True))
    return Reading(tokens, cache=readings[-1].cache)


def _flat(cache: Sequence[KeyValue]) -> list[Tensor]:
    return [tensor for pair in cache for tensor in pair]


def _per_token(cache: Sequence[KeyValue]) -> list[Tensor]:
    """Keys and values with their tokens in front: B G S K -> B S G K."""
    return [tensor.transpose(1, 2) for tensor in _flat(cache)]


def _real(tensors: Sequence[Tensor], mask: Tensor) -> list[Tensor]:
    return [tensor[mask == 1] for tensor in tensors]
