"""Large tables of cases: some run with the quick tests, and the others with the slow ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import pytest

Quick = Callable[[int], bool]
"""Whether the case of a number is among the quick ones."""


def one_in(count: int) -> pytest.MarkDecorator:
    """Marks a test of which one case in so many is quick, beginning with the first."""
    return thinned(lambda number: number % count == 0)


def thinned(quick: Quick) -> pytest.MarkDecorator:
    """Marks a test of which some cases, by their numbers, are quick."""
    mark: pytest.MarkDecorator = pytest.mark.thinned.with_args(quick)
    return mark


def mark_slow(items: Sequence[pytest.Item]) -> None:
    """Mark the other cases of such tests as slow."""
    numbers = Counter[str]()
    for item in items:
        if (marker := item.get_closest_marker("thinned")) is None:
            continue
        test = item.nodeid.partition("[")[0]
        if not marker.args[0](numbers[test]):
            item.add_marker(pytest.mark.slow)
        numbers[test] += 1
