"""Named sizes.

A trace follows every size in two runs with different numbers for each symbol: a size that is equal in both is static,
and any other has the name of the symbol (or sum of symbols) with that pair of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import torch

SizePair = tuple[int, int]
"""A size in the two runs."""

_SUM = " + "


@dataclass(frozen=True)
class Placeholder:
    """An input of a trace: dims are static sizes, symbols, or sums of symbols ('a + b')."""

    name: str
    dtype: torch.dtype
    dims: tuple[int | str, ...]


@dataclass(frozen=True)
class DerivedSize:
    """A size computed from another symbol, its ``source``."""

    source: str
    size: Callable[[int], int]


@dataclass(frozen=True)
class Symbols:
    """Named sizes, each with a unique pair of numbers; no input has the sizes in ``computed``."""

    values: Mapping[str, SizePair]
    computed: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        inputs: Sequence[Placeholder],
        taken: Iterable[int],
        sums: Iterable[str] = (),
        derived: Mapping[str, DerivedSize] = MappingProxyType({}),
        by_value: Mapping[str, DerivedSize] = MappingProxyType({}),
    ) -> Symbols:
        """Choose numbers for every name in ``inputs`` and ``sums``, and compute the sizes ``derived`` from them, and those ``by_value``.

        The numbers are primes other than the static sizes ``taken``. The second run has much larger ones, so that sliced and
        divided sizes differ between the runs too.
        """
        small, large = _primes(1009, set(taken)), _primes(65_537, set(taken))
        dims = [dim for placeholder in inputs for dim in placeholder.dims if isinstance(dim, str)]
        names = dict.fromkeys([*dims, *sums, *(size.source for size in derived.values())])
        symbols = dict.fromkeys(symbol for name in names for symbol in summands(name))
        values: dict[str, SizePair] = {symbol: (next(small), next(large)) for symbol in symbols}
        for name in names:
            first, second = zip(*(values[symbol] for symbol in summands(name)), strict=True)
            values[name] = sum(first), sum(second)
        for name, size in {**derived, **by_value}.items():
            values[name] = size.size(values[size.source][0]), size.size(values[size.source][1])
        return cls(values, frozenset([*(size.source for size in derived.values()), *by_value]))

    def with_names(self, names: Iterable[str]) -> Symbols:
        """The same symbols, and more."""
        used = {number for pair in self.values.values() for number in pair}
        small, large = _primes(1009, used), _primes(65_537, used)
        return replace(self, values={**self.values, **{name: (next(small), next(large)) for name in names}})

    def sizes(self, dim: int | str) -> SizePair:
        """The pair of a static size or a name."""
        return (dim, dim) if isinstance(dim, int) else self.values[dim]

    def name(self, sizes: SizePair) -> int | str | None:
        """The static size, the name of the symbol, or None if a pair has neither."""
        if sizes[0] == sizes[1]:
            return sizes[0]
        return self._names.get(sizes)

    @cached_property
    def _names(self) -> dict[SizePair, str]:
        """The first name with each pair."""
        return {sizes: name for name, sizes in list(self.values.items())[::-1]}


def summands(name: str) -> list[str]:
    """The symbols in a sum such as ``past_sequence_length + sequence_length``; a single symbol is its own sum."""
    return name.split(_SUM)


def size_of(dim: int | str, numbers: Mapping[str, int]) -> int:
    """The number of a dim, by the numbers of its symbols."""
    return dim if isinstance(dim, int) else sum(numbers[symbol] for symbol in summands(dim))


def _primes(start: int, taken: set[int]) -> Iterator[int]:
    return (
        n
        for n in range(start, 2**20, 2)
        if n not in taken and all(n % d for d in range(3, math.isqrt(n) + 1, 2))
    )
