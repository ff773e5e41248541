"""Integer polynomials in the sizes of a call: batch B, T new tokens, P past tokens, S encoder tokens."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

BATCH: Final = "B"
LENGTHS: Final = ("T", "P", "S")
WHOLE: Final = 64
"""A multiple of the chunk lengths of all recurrences."""
MEANINGS = {"B": "batch", "T": "new tokens", "P": "past tokens", "S": "encoder tokens"}

Powers = tuple[tuple[str, int], ...]
"""A product of symbols, each with its power, in the order of :data:`MEANINGS`."""

_ORDER = {symbol: index for index, symbol in enumerate(MEANINGS)}
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Polynomial:
    """A sum of terms: the non-zero coefficient of each product of symbols."""

    terms: Mapping[Powers, int]

    @classmethod
    def constant(cls, value: int) -> Polynomial:
        """A number."""
        return cls({(): value} if value else {})

    @classmethod
    def symbol(cls, name: str) -> Polynomial:
        """One of the symbols."""
        return cls({((name, 1),): 1})

    @classmethod
    def sum(cls, parts: Iterable[Polynomial]) -> Polynomial:
        """The sum of polynomials; 0 for none."""
        terms: dict[Powers, int] = {}
        for part in parts:
            for powers, coefficient in part.terms.items():
                terms[powers] = terms.get(powers, 0) + coefficient
        return cls({powers: coefficient for powers, coefficient in terms.items() if coefficient})

    @property
    def symbols(self) -> list[str]:
        """The symbols that occur."""
        names = {symbol for powers in self.terms for symbol, _ in powers}
        return [symbol for symbol in MEANINGS if symbol in names]

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __add__(self, other: Polynomial | int) -> Polynomial:
        return Polynomial.sum((self, _polynomial(other)))

    __radd__ = __add__

    def __sub__(self, other: Polynomial | int) -> Polynomial:
        return self + _polynomial(other) * -1

    def __mul__(self, other: Polynomial | int) -> Polynomial:
        pairs = itertools.product(self.terms.items(), _polynomial(other).terms.items())
        return Polynomial.sum(Polynomial({_product(a, b): m * n}) for (a, m), (b, n) in pairs)

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Polynomial:
        """The exact quotient. Raises ValueError if a coefficient is not divisible."""
        if any(coefficient % divisor for coefficient in self.terms.values()):
            raise ValueError(f"{self} cannot be divided by {divisor}")
        return Polynomial({powers: coefficient // divisor for powers, coefficient in self.terms.items()})

    def given(self, **sizes: int) -> Polynomial:
        """The polynomial with numbers for some of its symbols."""
        return Polynomial.sum(
            Polynomial({tuple(power for power in powers if power[0] not in sizes): value})
            for powers, coefficient in self.terms.items()
            if (value := coefficient * math.prod(sizes[s] ** n for s, n in powers if s in sizes))
        )

    def at(self, **sizes: int) -> int:
        """The value at some sizes; surplus symbols are ignored. Raises KeyError for a symbol without a number."""
        return sum(
            coefficient * math.prod(sizes[symbol] ** power for symbol, power in powers)
            for powers, coefficient in self.terms.items()
        )

    def __str__(self) -> str:
        """Text such as ``36,864 B T² + 170,926,080 B T``, highest degree first."""
        terms = sorted(self.terms.items(), key=lambda term: _rank(term[0]))
        text = ""
        for powers, coefficient in terms:
            sign = "" if not text and coefficient > 0 else "-" if coefficient < 0 else "+"
            symbols = " ".join(
                symbol + (str(n).translate(_SUPERSCRIPTS) if n > 1 else "") for symbol, n in powers
            )
            number = "" if abs(coefficient) == 1 and symbols else f"{abs(coefficient):,}"
            term = " ".join(filter(None, [number, symbols]))
            text += f" {sign} {term}" if text else f"{sign}{term}"
        return text or "0"

    def as_dict(self) -> list[dict[str, Any]]:
        """As JSON data: the sum over the list of coefficient * the product of symbol ** power."""
        return [
            {"coefficient": coefficient, "powers": dict(powers)} for powers, coefficient in self.terms.items()
        ]


def _polynomial(value: Polynomial | int) -> Polynomial:
    return value if isinstance(value, Polynomial) else Polynomial.constant(value)


def _product(a: Powers, b: Powers) -> Powers:
    powers = dict(a)
    for symbol, power in b:
        powers[symbol] = powers.get(symbol, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: _ORDER[item[0]]))


def _rank(powers: Powers) -> list[int]:
    """The sort key of a term: by degree, then by symbol."""
    named = dict(powers)
    return [-sum(named.values()), *(-named.get(symbol, 0) for symbol in MEANINGS)]


@dataclass(frozen=True)
class Interpolation:
    """Interpolates polynomials that are quadratic in lengths, and linear in B, from their values at ``points``.

    Lengths are multiples of :data:`WHOLE`, so that chunks of tokens are full. The last point is redundant: it detects functions
    that are not such polynomials.
    """

    points: tuple[Mapping[str, int], ...]
    products: tuple[Powers, ...]
    inverse: tuple[tuple[int, ...], ...]
    """The inverse of the matrix of the products at all points but the last, times ``divisor``."""
    divisor: int
    check: tuple[int, ...]
    """The products at the last point."""

    @classmethod
    def over(cls, symbols: Iterable[str], batches: int = 1) -> Interpolation:
        """Interpolation over some of the symbols, of degree ``batches`` in B (2 if every text meets every image)."""
        return _interpolation(tuple(symbols), batches)

    def polynomial(self, values: Sequence[int]) -> Polynomial:
        """The polynomial with these values at the points. Coefficients are rounded up to integers, because the cost of a chunk
        may not divide evenly among its tokens. Raises ValueError if no polynomial has these values."""
        *enough, check = values
        exact = [sum(map(operator.mul, row, enough)) for row in self.inverse]  # times the divisor
        if sum(map(operator.mul, exact, self.check)) != check * self.divisor:
            raise ValueError("not a polynomial that is linear in each batch and at most quadratic in lengths")
        coefficients = zip(self.products, exact, strict=True)
        return Polynomial({powers: -(-value // self.divisor) for powers, value in coefficients if value})


@functools.cache
def _interpolation(symbols: tuple[str, ...], batches: int) -> Interpolation:
    lengths = [symbol for symbol in LENGTHS if symbol in symbols]
    corner: dict[str, int] = {BATCH: 1009}
    corner |= zip(lengths, (31 * WHOLE, 47 * WHOLE, 63 * WHOLE), strict=False)
    unit = {symbol: 1 if symbol == BATCH else WHOLE for symbol in corner}
    by_length: list[tuple[str, ...]] = [
        chosen for degree in (0, 1, 2) for chosen in itertools.combinations_with_replacement(lengths, degree)
    ]
    every = [(BATCH,) * degree + chosen for degree in range(batches + 1) for chosen in by_length]
    points = [
        {symbol: corner[symbol] + unit[symbol] * chosen.count(symbol) for symbol in corner}
        for chosen in every
    ]
    products = [tuple((symbol, n) for symbol in MEANINGS if (n := chosen.count(symbol))) for chosen in every]
    matrix = [[Polynomial({powers: 1}).at(**point) for powers in products] for point in points]
    check = {symbol: number * 3 + unit[symbol] for symbol, number in corner.items()}
    inverse = _inverted(matrix)
    divisor = math.lcm(*(value.denominator for row in inverse for value in row))
    return Interpolation(
        (*points, check),
        tuple(products),
        tuple(tuple(int(value * divisor) for value in row) for row in inverse),
        divisor,
        tuple(Polynomial({powers: 1}).at(**check) for powers in products),
    )


def _inverted(matrix: list[list[int]]) -> tuple[tuple[Fraction, ...], ...]:
    """The inverse of a regular matrix, by elimination."""
    size = len(matrix)
    rows = [
        [Fraction(n) for n in row] + [Fraction(i == j) for j in range(size)] for i, row in enumerate(matrix)
    ]
    for column in range(size):
        pivot = next(row for row in range(column, size) if rows[row][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for other in range(size):
            if other != column and (factor := rows[other][column]):
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[column], strict=True)]
    return tuple(tuple(row[size:]) for row in rows)
