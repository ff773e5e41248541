"""Polynomials in the sizes of a call: arithmetic, values, text, JSON, and finding them from values."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zoo.reports.polynomial import Interpolation, Polynomial, Powers

B, T, P, S = (Polynomial.symbol(name) for name in "BTPS")


def products(symbols: str) -> st.SearchStrategy[Powers]:
    return st.lists(st.sampled_from(symbols), max_size=2).map(
        lambda chosen: tuple((symbol, chosen.count(symbol)) for symbol in symbols if symbol in chosen)
    )


@st.composite
def polynomials(draw: st.DrawFn) -> Polynomial:
    terms = draw(st.dictionaries(products("TPS"), st.integers(-(2**40), 2**40), max_size=6))
    both = [(draw(st.sampled_from([(), (("B", 1),)])) + powers, n) for powers, n in terms.items()]
    return Polynomial.sum(Polynomial({powers: n}) for powers, n in both if n)


SIZES = st.fixed_dictionaries({symbol: st.integers(0, 5000) for symbol in "BTPS"})


@pytest.mark.slow
@given(polynomials(), polynomials(), SIZES, st.integers(-9, 9))
def test_arithmetic_is_that_of_the_values(
    a: Polynomial, b: Polynomial, sizes: dict[str, int], n: int
) -> None:
    assert (a + b).at(**sizes) == a.at(**sizes) + b.at(**sizes)
    assert (a - b).at(**sizes) == a.at(**sizes) - b.at(**sizes)
    assert (a * b).at(**sizes) == a.at(**sizes) * b.at(**sizes)
    assert (n * a + n).at(**sizes) == n * a.at(**sizes) + n
    assert (a * 7) // 7 == a
    part = {"T": sizes["T"], "B": sizes["B"]}
    assert a.given(**part).at(P=sizes["P"], S=sizes["S"]) == a.at(**sizes)


@pytest.mark.slow
@given(polynomials())
def test_values_give_the_polynomial_back(wanted: Polynomial) -> None:
    found = Interpolation.over("BTPS")
    assert found.polynomial([wanted.at(**point) for point in found.points]) == wanted


@pytest.mark.slow
@given(polynomials(), SIZES)
def test_json_evaluates_to_the_same(a: Polynomial, sizes: dict[str, int]) -> None:
    data = json.loads(json.dumps(a.as_dict()))
    value = sum(t["coefficient"] * math.prod(sizes[s] ** n for s, n in t["powers"].items()) for t in data)
    assert value == a.at(**sizes)


def test_what_is_no_such_polynomial_is_refused() -> None:
    found = Interpolation.over("BT")
    for function in (lambda t: t**3, lambda t: t // 7, lambda t: 2**t % 1000):
        with pytest.raises(
            ValueError, match="not a polynomial that is linear in each batch and at most quadratic"
        ):
            found.polynomial([point["B"] * function(point["T"]) for point in found.points])


def test_text_has_the_highest_degree_first() -> None:
    assert str(12 * B * T * T + 1536 * B * T + B + 7) == "12 B T² + 1,536 B T + B + 7"
    assert str(T * -2 + 1) == "-2 T + 1"
    assert str(B * T - B * P) == "B T - B P"
    assert str(B - B) == "0"


def test_division_is_exact_or_refused() -> None:
    with pytest.raises(ValueError, match="3 B cannot be divided by 2"):
        _ = 3 * B // 2


def test_symbols_are_those_that_occur() -> None:
    assert (S * B + P).symbols == ["B", "P", "S"]
    with pytest.raises(KeyError):
        (B * T).at(B=1)
