"""Padding must not matter: neither its content, nor its position, nor its presence.

Shapes: batch B, tokens T, real tokens N of the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import torch
from torch import Tensor

from zoo.checks.result import Check, equal, skipped
from zoo.checks.stack_runner import StackOutput, StackRunner, another, draw_ids, relative_difference, split
from zoo.checks.subject import CheckedModel

Where = Literal["right", "left", "inside"]
"""The position of padding: after a row's tokens, before them, or between a prompt and the steps that follow it."""

PLACES: tuple[Where, ...] = ("right", "left", "inside")


def padding(side: StackRunner, subject: CheckedModel) -> Iterator[Check]:
    """Check that masked tokens are not seen, and that a padded batch equals its rows alone."""
    rows = rows_of_all_lengths(side)
    batches = [padded(rows, where) for where in PLACES]
    ids, masks = (torch.cat(parts) for parts in zip(*batches, strict=True))
    changed = torch.where(masks == 1, ids, another(ids, side.vocabulary))
    readings = split(side.read(torch.cat((ids, changed)), torch.cat((masks, masks)), None), 2 * len(PLACES))
    outputs = [real(reading, mask) for reading, (_, mask) in zip(readings, batches * 2, strict=True)]
    padded_outputs, others = outputs[: len(PLACES)], outputs[len(PLACES) :]
    content = f"{side.prefix}padding content"
    explanation = "outputs of real tokens do not change when padding tokens, wherever they are, are replaced"
    if side.vocabulary < 2:
        yield skipped(content, explanation, "the vocabulary has only one token")
    else:
        yield equal(content, max(map(relative_difference, padded_outputs, others)), explanation)
    explanation = (
        "outputs of real tokens are the same with padding on the left, on the right and inside a row"
    )
    yield equal(
        f"{side.prefix}padding side",
        max(relative_difference(padded_outputs[0], reading) for reading in padded_outputs[1:]),
        explanation,
    )
    explanation = (
        "each row of a batch padded on the right, on the left or inside gives the outputs that it gives alone"
    )
    alone = _one_by_one(side, rows)
    yield equal(
        f"{side.prefix}padded batch",
        max(relative_difference(reading, alone) for reading in padded_outputs),
        explanation,
    )


def rows_of_all_lengths(side: StackRunner) -> list[Tensor]:
    """Three rows: the longest, one of half its length, and one token."""
    ids = draw_ids(3, side.length, side.vocabulary)
    lengths = (side.length, (side.length + 1) // 2, 1)
    return [row[:length] for row, length in zip(ids, lengths, strict=True)]


def padded(rows: Sequence[Tensor], where: Where, *, extra: int = 1) -> tuple[Tensor, Tensor]:
    """Rows of different lengths as one batch, B T, and its mask; ``extra`` is the padding of the longest row."""
    width = max(len(row) for row in rows) + extra
    ids, mask = rows[0].new_zeros(len(rows), width), rows[0].new_zeros(len(rows), width)
    for b, row in enumerate(rows):
        before = {"right": len(row), "left": 0, "inside": len(row) // 2}[where]
        places = [*range(before), *range(width - len(row) + before, width)]
        ids[b, places] = row
        mask[b, places] = 1
    return ids, mask


def real(reading: StackOutput, mask: Tensor) -> list[Tensor]:
    """The outputs of real tokens, N ... each, and of sequences, B ... each."""
    return [x[mask == 1] for x in reading.tokens] + list(reading.sequences)


def _one_by_one(side: StackRunner, rows: Sequence[Tensor]) -> list[Tensor]:
    """As ``real`` for a padded batch, from each row alone."""
    alone = [side.read(row[None], None, None) for row in rows]
    tokens = [
        torch.cat([x[0] for x in outputs]) for outputs in zip(*(row.tokens for row in alone), strict=True)
    ]
    sequences = [torch.cat(outputs) for outputs in zip(*(row.sequences for row in alone), strict=True)]
    return tokens + sequences
