"""Numbers as text."""

from __future__ import annotations

import pytest

from zoo.core.units import byte_text, count_text, flop_text, parameter_text, time_text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1500, "1.5 kB"),
        (498_000_000, "498.0 MB"),
        (999_960_000, "1.0 GB"),
        (2.5e12, "2.5 TB"),
        (7e18, "7000.0 PB"),
    ],
)
def test_bytes_have_one_decimal(count: float, text: str) -> None:
    assert byte_text(count) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (7, "7"), (0.5, "0.50"), (999, "999"), (1000, "1.00 k"), (12_345, "12.3 k"), (124_439_808, "124 M"), (1.34e12, "1.34 T"), (5e18, "5000 P")],
)  # fmt: skip
def test_counts_have_three_digits(count: float, text: str) -> None:
    assert count_text(count) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (768, "768"), (9999, "9,999"), (12345, "12.3K"), (999_499, "999K"), (999_600, "1.00M"), (124439808, "124M"), (6738415616, "6.74B"), (671026404352, "671B")],
)  # fmt: skip
def test_parameters_are_full_or_have_three_digits(count: int, text: str) -> None:
    assert parameter_text(count) == text


def test_flops_have_a_unit() -> None:
    assert [flop_text(count) for count in (12, 292e9)] == ["12 FLOP", "292 GFLOP"]


def test_durations_have_three_digits() -> None:
    durations = [1.5, 0.00125, 5.97e-5, 0.9996]
    assert [time_text(each) for each in durations] == ["1.50 s", "1.25 ms", "59.7 us", "1.00 s"]
