"""Tables of which a part is quick: the part shows every value of every axis that it has cases enough for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thinned import TABLES, Case, arguments, axes, spread


def table(*lengths: int) -> list[Case]:
    """The product of axes of some lengths."""
    return [
        {str(axis): value for axis, value in enumerate(values)} for values in product(*map(range, lengths))
    ]


def shown(cases: Sequence[Case], count: int) -> dict[str, set[object]]:
    """The values of each axis that the quick cases have."""
    quick = spread(cases, count)
    return {name: {cases[number][name] for number in quick} for name in axes(cases)}


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(1, 30))
def test_one_case_in_so_many_shows_every_value_there_is_room_for(lengths: list[int], count: int) -> None:
    cases = table(*lengths)
    places = -(-len(cases) // count)
    assert len(spread(cases, count)) == places
    for name, values in shown(cases, count).items():
        assert len(values) == min(axes(cases)[name], places)


def test_a_step_that_divides_an_axis_hides_none_of_its_values() -> None:
    cases = table(5, 2, 3)
    assert {cases[number]["2"] for number in range(0, 30, 3)} == {0}
    assert shown(cases, 3) == {"0": {0, 1, 2, 3, 4}, "1": {0, 1}, "2": {0, 1, 2}}


def test_a_table_that_is_no_product_shows_its_axes_whole_with_more_cases_if_need_be() -> None:
    pairs = [*((name, "left") for name in "abcaa"), ("a", "right"), *[("a", "left")] * 3]
    cases: list[Case] = [{"name": name, "side": side} for name, side in pairs]
    assert shown(cases, 3) == {"name": set("abc"), "side": {"left", "right"}}
    assert len(spread(cases, 3)) == 4


def test_a_list_of_cases_is_thinned_in_steps() -> None:
    assert spread([{"name": name} for name in "abcdefgh"], 3) == {0, 3, 6}
    assert spread([{}], 3) == {0}


def test_no_table_of_these_tests_hides_a_value(pytestconfig: pytest.Config) -> None:
    """Of all tables that are collected together with this test."""
    hidden = []
    for name, (count, items) in pytestconfig.stash[TABLES].items():
        cases = [arguments(item) for item in items]
        quick = [case for case, item in zip(cases, items, strict=True) if not item.get_closest_marker("slow")]
        for axis, length in axes(cases).items():
            if len({case[axis] for case in quick}) < length <= -(-len(cases) // count):
                hidden.append(f"{name}: {axis}")
    assert hidden == []
