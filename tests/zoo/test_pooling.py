"""One vector for a sequence, whatever its padding."""

import pytest
import torch

from specs.head import AtToken
from zoo.components.pooling import TokenSequence, pool

X = torch.arange(1.0, 11.0).view(2, 5, 1)
LEFT = torch.tensor([[0, 1, 1, 1, 1], [0, 0, 0, 1, 1]])
RIGHT = LEFT.flip(1)


@pytest.mark.parametrize(
    ("pooling", "mask", "expected"),
    [
        ("first", None, [1, 6]),
        ("first", LEFT, [2, 9]),
        ("first", RIGHT, [1, 6]),
        ("last", None, [5, 10]),
        ("last", LEFT, [5, 10]),
        ("last", RIGHT, [4, 7]),
        ("mean", None, [3, 8]),
        ("mean", LEFT, [3.5, 9.5]),
        ("mean", RIGHT, [2.5, 6.5]),
    ],
)
def test_by_place(pooling, mask, expected):
    assert pool(X, TokenSequence(None, mask), pooling).flatten().tolist() == expected


@pytest.mark.parametrize(
    ("ids", "mask", "expected"),
    [
        ([[0, 7, 0, 7, 0], [7, 7, 7, 7, 7]], None, [2, 6]),  # the first of several
        ([[0, 7, 0, 7, 0], [0, 0, 0, 0, 0]], None, [2, 10]),  # none: the last token
        ([[7, 0, 7, 0, 0], [7, 7, 7, 0, 0]], LEFT, [3, 10]),  # padding does not count
        ([[0, 7, 0, 0, 7], [0, 0, 7, 7, 7]], RIGHT, [2, 7]),
    ],
)
def test_at_a_token(ids, mask, expected):
    found = pool(X, TokenSequence(torch.tensor(ids), mask), AtToken(token=7))
    assert found.flatten().tolist() == expected


@pytest.mark.parametrize("pooling", ["first", "last", "mean", AtToken(token=7)])
def test_a_row_of_padding_gives_zeros(pooling):
    mask = torch.zeros(2, 5, dtype=torch.int64)
    assert not pool(X, TokenSequence(torch.full((2, 5), 7), mask), pooling).any()
