"""One vector for a sequence, whatever its padding."""

from typing import get_args

import pytest
import torch

from specs.kinds.pooling import AtToken, TokenPooling
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
        ("max", None, [5, 10]),
        ("max", LEFT, [5, 10]),
        ("max", RIGHT, [4, 7]),
        ("mean_sqrt_length", None, [15 / 5**0.5, 40 / 5**0.5]),
        ("mean_sqrt_length", LEFT, [7, 19 / 2**0.5]),
        ("mean_sqrt_length", RIGHT, [5, 13 / 2**0.5]),
        ("weighted_mean", None, [55 / 15, 130 / 15]),
        ("weighted_mean", LEFT, [4, 29 / 3]),
        ("weighted_mean", RIGHT, [3, 20 / 3]),
    ],
)
def test_by_place(pooling, mask, expected):
    assert pool(X, TokenSequence(None, mask), pooling).flatten().tolist() == pytest.approx(expected)


def test_the_largest_value_may_be_negative():
    for mask in (None, LEFT, RIGHT):
        found = pool(-X, TokenSequence(None, mask), "max").flatten().tolist()
        assert found == {id(None): [-1, -6], id(LEFT): [-2, -9], id(RIGHT): [-1, -6]}[id(mask)]


@pytest.mark.parametrize(
    ("ids", "mask", "expected"),
    [
        ([[0, 7, 0, 7, 0], [7, 7, 7, 7, 7]], None, [2, 6]),  # the first of several
        ([[0, 7, 0, 7, 0], [0, 0, 0, 0, 0]], None, [2, 6]),  # none: the first token
        ([[7, 0, 7, 0, 0], [7, 7, 7, 0, 0]], LEFT, [3, 9]),  # padding does not count
        ([[0, 7, 0, 0, 7], [0, 0, 7, 7, 7]], RIGHT, [2, 6]),
    ],
)
def test_at_a_token(ids, mask, expected):
    found = pool(X, TokenSequence(torch.tensor(ids), mask), AtToken(token=7))
    assert found.flatten().tolist() == expected


@pytest.mark.parametrize(
    ("ids", "mask", "expected"),
    [
        (
            [[0, 7, 9, 7, 9], [8, 7, 7, 7, 7]],
            None,
            [3, 6],
        ),  # the first of several, and of other ids in other rows
        ([[9, 0, 0, 0, 0], [9, 9, 9, 1, 2]], LEFT, [2, 10]),  # padding does not count
        ([[0, 7, 0, 0, 9], [0, 0, 9, 9, 9]], RIGHT, [2, 6]),
    ],
)
def test_at_the_highest_id(ids, mask, expected):
    found = pool(X, TokenSequence(torch.tensor(ids), mask), AtToken(token="highest"))
    assert found.flatten().tolist() == expected


@pytest.mark.parametrize("pooling", [*get_args(TokenPooling), AtToken(token=7), AtToken(token="highest")])
def test_a_row_of_padding_gives_zeros(pooling):
    mask = torch.zeros(2, 5, dtype=torch.int64)
    assert not pool(X, TokenSequence(torch.full((2, 5), 7), mask), pooling).any()
