"""Padding must not matter: neither what is in it, nor on which side it is, nor that it is there.

Shapes: batch B, tokens T, real tokens N of the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from zoo.checks.result import Check, equal, skipped
from zoo.checks.side import Reading, Side, another, apart, draw_ids, split
from zoo.checks.subject import Subject


def padding(side: Side, subject: Subject) -> Iterator[Check]:
    """Whether tokens under the mask are seen, and whether a padded batch gives what its rows give alone."""
    rows = rows_of_all_lengths(side)
    right, left = padded(rows, left=False), padded(rows, left=True)
    ids, masks = torch.cat((right[0], left[0])), torch.cat((right[1], left[1]))
    changed = torch.where(masks == 1, ids, another(ids, side.vocabulary))
    readings = split(side.read(torch.cat((ids, changed)), torch.cat((masks, masks)), None), 4)
    on_right, on_left, other_right, other_left = (
        real(reading, mask) for reading, mask in zip(readings, (right[1], left[1]) * 2, strict=True)
    )
    content = f"{side.prefix}padding content"
    explanation = "outputs of real tokens do not change when the padding, right or left, holds other tokens"
    if side.vocabulary < 2:
        yield skipped(content, explanation, "the vocabulary has one token")
    else:
        yield equal(content, max(apart(on_right, other_right), apart(on_left, other_left)), explanation)
    explanation = "outputs of real tokens are the same with padding on the left and on the right"
    yield equal(f"{side.prefix}padding side", apart(on_right, on_left), explanation)
    explanation = "a batch padded on the right or left gives each row what the row gives alone"
    alone = _one_by_one(side, rows)
    yield equal(f"{side.prefix}padded batch", max(apart(on_right, alone), apart(on_left, alone)), explanation)


def rows_of_all_lengths(side: Side) -> list[Tensor]:
    """Three rows: the longest, one of half its length, and one token."""
    ids = draw_ids(3, side.length, side.vocabulary)
    lengths = (side.length, (side.length + 1) // 2, 1)
    return [row[:length] for row, length in zip(ids, lengths, strict=True)]


def padded(rows: Sequence[Tensor], *, left: bool, extra: int = 1) -> tuple[Tensor, Tensor]:
    """Rows of different lengths as one batch, B T, and its mask; ``extra`` is the padding of the longest row."""
    width = max(len(row) for row in rows) + extra
    ids, mask = rows[0].new_zeros(len(rows), width), rows[0].new_zeros(len(rows), width)
    for b, row in enumerate(rows):
        place = slice(width - len(row), None) if left else slice(len(row))
        ids[b, place] = row
        mask[b, place] = 1
    return ids, mask


def real(reading: Reading, mask: Tensor) -> list[Tensor]:
    """What a reading says of the real tokens, N ... each, and of the sequences, B ... each."""
    return [x[mask == 1] for x in reading.tokens] + list(reading.sequences)


def _one_by_one(side: Side, rows: Sequence[Tensor]) -> list[Tensor]:
    """As ``real`` of a padded batch, but of each row alone."""
    alone = [side.read(row[None], None, None) for row in rows]
    tokens = [torch.cat([x[0] for x in each]) for each in zip(*(row.tokens for row in alone), strict=True)]
    sequences = [torch.cat(each) for each in zip(*(row.sequences for row in alone), strict=True)]
    return tokens + sequences
