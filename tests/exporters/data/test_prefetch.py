"""What is made ahead of its use: in order, in bounded number, with its errors."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterator

import pytest

from exporters.data.prefetch import WAITING, prefetched

QUARTER = WAITING // 4


def a_quarter(item: int) -> int:
    """Of what may wait."""
    return QUARTER


def test_items_come_in_order() -> None:
    series = [functools.partial(range, start, start + 3 * start) for start in range(20)]
    with prefetched(series, a_quarter) as every:
        assert [list(items) for items in every] == [list(make()) for make in series]


def test_waiting_items_are_bounded_in_bytes_and_series() -> None:
    made, lock = [0], threading.Lock()

    def items() -> Iterator[int]:
        for item in range(10):
            with lock:
                made[0] += 1
            yield item

    workers = os.cpu_count() or 1
    with prefetched([items] * 50, a_quarter) as every:
        for place, taken in enumerate(every):
            used = place * 10
            for _ in taken:
                used += 1
                with lock:
                    assert made[0] <= used + (workers + 1) * (4 + 2)


def test_an_error_is_raised_where_its_item_would_be_used() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    with prefetched([lambda: iter([0]), broken, *[lambda: iter(range(100))] * 9], a_quarter) as every:
        assert list(next(every)) == [0]
        items = next(every)
        assert next(items) == 1
        with pytest.raises(ValueError, match="no more"):
            next(items)
    assert threading.active_count() < 50


def test_unused_series_are_stopped() -> None:
    def endless() -> Iterator[int]:
        while True:
            yield 0

    with prefetched([endless] * 3, a_quarter) as every:
        assert next(next(every)) == 0
