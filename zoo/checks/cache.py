"""Cached decoding must equal a full pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from zoo.checks.padding import Where, padded, rows_of_all_lengths
from zoo.checks.result import Check, equal, skipped
from zoo.checks.stack_runner import StackOutput, StackRunner, draw_ids, relative_difference
from zoo.checks.subject import CheckedModel
from zoo.components.mixer import LENGTH, State, declared_state

_ONE_TOKEN = "context_length allows only one token"


def token_by_token(side: StackRunner, subject: CheckedModel) -> Check:
    """Check that single steps equal one pass."""
    name = f"{side.prefix}cache, token by token"
    explanation = f"decoding token by token with the cache gives the outputs and the cache of {_whole(side)}"
    if side.length < 2:
        return skipped(name, explanation, _ONE_TOKEN)
    ids = draw_ids(1, side.length, side.vocabulary)
    whole, steps = _read_whole(side, ids, None, 1), _read_in_pieces(side, ids, None, range(side.length + 1))
    return equal(
        name,
        max(
            relative_difference(whole.tokens, steps.tokens),
            relative_difference(_flat(whole.cache), _flat(steps.cache)),
        ),
        explanation,
    )


def prefill_and_steps(side: StackRunner, subject: CheckedModel) -> Check:
    """Check that a ragged batch, prefilled and continued, equals one pass."""
    name = f"{side.prefix}cache, ragged prefill"
    explanation = (
        "for a batch padded on the left, or between prompt and steps, prefill and steps with the cache equal "
        f"{_whole(side)}"
    )
    if side.length < 2:
        return skipped(name, explanation, _ONE_TOKEN)
    rows, half = rows_of_all_lengths(side), side.length // 2
    cuts = [0, half, *range(min(half + 2, side.length), side.length + 1)]
    differences: list[float] = []
    sides: tuple[Where, ...] = ("left", "inside")
    for where in sides:
        ids, mask = padded(rows, where, extra=0)
        whole, pieces = _read_whole(side, ids, mask, half), _read_in_pieces(side, ids, mask, cuts)
        differences += [
            relative_difference(_real(whole.tokens, mask), _real(pieces.tokens, mask)),
            relative_difference(_real(_per_token(side, whole), mask), _real(_per_token(side, pieces), mask)),
            relative_difference(_constant(side, whole), _constant(side, pieces)),
        ]
    return equal(name, max(differences), explanation)


def empty_cache(side: StackRunner, subject: CheckedModel) -> Check:
    """Check that an empty cache equals no cache."""
    explanation = "a cache of length 0 gives the same outputs as no cache"
    ids = draw_ids(1, side.length, side.vocabulary)
    without = side.read(ids, None, None)
    empty = [
        tuple(x.new_zeros(tensor.shape(len(x), 0)) for tensor, x in zip(layer, state, strict=True))
        for layer, state in zip(side.states, without.cache, strict=True)
    ]
    return equal(
        f"{side.prefix}cache, empty",
        relative_difference(without.tokens, side.read(ids, _counting(side, ids), empty).tokens),
        explanation,
    )


def _whole(side: StackRunner) -> str:
    return "one call after the first" if side.stack.sees_prompt else "one full pass"


def _read_whole(side: StackRunner, ids: Tensor, mask: Tensor | None, prompt: int) -> StackOutput:
    """Return the outputs of one pass; of a prompt and then the rest where the tokens of a prompt see each other."""
    if side.stack.sees_prompt:
        return _read_in_pieces(side, ids, mask, (0, prompt, side.length))
    return side.read(ids, mask, None)


def _read_in_pieces(side: StackRunner, ids: Tensor, mask: Tensor | None, cuts: Iterable[int]) -> StackOutput:
    """Return the concatenated outputs of the pieces between consecutive cuts, each read with the cache of the earlier
    pieces."""
    mask = _counting(side, ids) if mask is None else mask
    readings: list[StackOutput] = []
    cache: Sequence[State] | None = None
    for start, end in pairwise(cuts):
        readings.append(side.read(ids[:, start:end], None if mask is None else mask[:, :end], cache))
        cache = readings[-1].cache
    tokens = tuple(
        torch.cat(outputs, 1) for outputs in zip(*(reading.tokens for reading in readings), strict=True)
    )
    return StackOutput(tokens, cache=readings[-1].cache)


def _counting(side: StackRunner, ids: Tensor) -> Tensor | None:
    """1 for every token, B T, where the state does not tell how many came before; else None."""
    grows = any(tensor.grows for state in side.states for tensor in state)
    return None if grows else torch.ones(ids.shape[:2], dtype=torch.int64)


def _flat(cache: Sequence[State]) -> list[Tensor]:
    return [tensor for state in cache for tensor in state]


def _per_token(side: StackRunner, reading: StackOutput) -> list[Tensor]:
    """The tensors of a cache that grow, with the tokens in front: B S ..."""
    return [
        x.movedim(1 + declared.dims.index(LENGTH), 1)
        for declared, x in declared_state(side.states, reading.cache)
        if declared.grows
    ]


def _constant(side: StackRunner, reading: StackOutput) -> list[Tensor]:
    """The parts of the state whose size does not grow, B ..."""
    return [x for declared, x in declared_state(side.states, reading.cache) if not declared.grows]


def _real(tensors: Sequence[Tensor], mask: Tensor) -> list[Tensor]:
    return [tensor[mask == 1] for tensor in tensors]
