"""Large tables of cases: some run with the quick tests, and the others with the slow ones.

The quick cases of a grid are spread over it: an argument that many cases share is seen with each of its values, if there are
as many quick cases as values.  Every n-th case alone would leave values out whenever n and the length of an axis have a
divisor in common.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pytest

Case = Mapping[str, Hashable]
"""The arguments of a case, each as something that is equal where the values are."""


Tables = dict[str, tuple[int, list[pytest.Item]]]
"""Of how many cases of each such test one is quick, and the cases, by the name of the test."""

TABLES = pytest.StashKey[Tables]()
"""The tables of a run, in the stash of its settings."""


def one_in(count: int) -> pytest.MarkDecorator:
    """Marks a test of which one case in so many is quick, beginning with the first."""
    mark: pytest.MarkDecorator = pytest.mark.thinned.with_args(count)
    return mark


def mark_slow(items: Sequence[pytest.Item]) -> Tables:
    """Mark the other cases of such tests as slow, and say which cases each table has but those slow by themselves."""
    tables: Tables = {}
    for item in items:
        if (marker := item.get_closest_marker("thinned")) and not item.get_closest_marker("slow"):
            tables.setdefault(item.nodeid.partition("[")[0], (marker.args[0], []))[1].append(item)
    for count, cases in tables.values():
        quick = spread([arguments(item) for item in cases], count)
        for number, item in enumerate(cases):
            if number not in quick:
                item.add_marker(pytest.mark.slow)
    return tables


def arguments(item: pytest.Item) -> Case:
    """The arguments of a test: values of plain data by what they say, and other objects by which object they are."""
    call = getattr(item, "callspec", None)
    return {} if call is None else {name: _comparable(value) for name, value in call.params.items()}


def _comparable(value: Any) -> Hashable:
    if isinstance(value, dict | list | tuple | str | int | float | None):
        return repr(value)
    return id(value)


def axes(cases: Sequence[Case]) -> dict[str, int]:
    """The arguments that are an axis of a table, which several cases share, and how many values each has."""
    values: dict[str, set[Hashable]] = defaultdict(set)
    for case in cases:
        for name, value in case.items():
            values[name].add(value)
    return {name: len(found) for name, found in values.items() if 1 < len(found) <= len(cases) / 2}


def spread(cases: Sequence[Case], count: int) -> set[int]:
    """The numbers of one case in so many, so that as many values as can be of each axis are seen.

    From the first case on, in steps of ``count``, the next case is taken that has the most values no case before it had.
    """
    lengths = axes(cases)
    places = -(-len(cases) // count)
    whole = {name for name, length in lengths.items() if length <= places}
    values = [frozenset((name, case[name]) for name in lengths) for case in cases]
    unseen = frozenset().union(*values)
    chosen: set[int] = set()
    while len(chosen) < places or any(name in whole for name, _ in unseen):
        best = _best(values, unseen, chosen, whole, len(chosen) * count % len(cases))
        chosen.add(best)
        unseen -= values[best]
    return chosen


def _best(
    values: Sequence[frozenset[tuple[str, Hashable]]],
    unseen: frozenset[tuple[str, Hashable]],
    chosen: set[int],
    whole: set[str],
    first: int,
) -> int:
    """The first case from a number on that shows the most unseen values, those of axes that can be seen whole before others."""
    most = (-1, -1)
    best = first
    for step in range(len(values)):
        number = (first + step) % len(values)
        if number in chosen:
            continue
        new = values[number] & unseen
        gain = (sum(name in whole for name, _ in new), len(new))
        if gain > most:
            most, best = gain, number
        if not unseen or len(new) == len(values[number]):
            break
    return best
