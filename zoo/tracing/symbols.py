"""Named sizes.

A trace follows every size in two runs with different numbers for each symbol: what is equal in both is static,
and what is not has the name of the symbol (or sum of symbols) with that pair of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

Sizes = tuple[int, int]
"""A size in the two runs."""

SUM = " + "


@dataclass(frozen=True)
class Placeholder:
    """An input of a trace: dims are static sizes, or names of symbols, or sums of them ('a + b')."""

    name: str
    dtype: torch.dtype
    dims: tuple[int | str, ...]


@dataclass(frozen=True)
class Symbols:
    """Named sizes, each with a pair of numbers that nothing else has."""

    values: Mapping[str, Sizes]

    @classmethod
    def of(cls, inputs: Sequence[Placeholder], taken: Iterable[int], sums: Iterable[str] = ()) -> Symbols:
        """Numbers for every name in ``inputs`` and in ``sums``: primes that are not among the static sizes ``taken``.

        Those of the second run are much larger, so that a size cut off or divided differs between the runs, too.
        """
        small, large = _primes(1009, set(taken)), _primes(65_537, set(taken))
        dims = [dim for given in inputs for dim in given.dims if isinstance(dim, str)]
        names = dict.fromkeys([*dims, *sums])
        values: dict[str, Sizes] = {name: (next(small), next(large)) for name in names if SUM not in name}
        for name in names:
            if SUM in name:
                parts = [values[part] for part in name.split(SUM)]
                values[name] = (sum(part[0] for part in parts), sum(part[1] for part in parts))
        return cls(values)

    def sizes(self, dim: int | str) -> Sizes:
        """The pair of a static size or a name."""
        return (dim, dim) if isinstance(dim, int) else self.values[dim]

    def name(self, sizes: Sizes) -> int | str | None:
        """The static size, or the name of a symbol, or None where neither is known."""
        if sizes[0] == sizes[1]:
            return sizes[0]
        return next((name for name, value in self.values.items() if value == sizes), None)


def _primes(start: int, taken: set[int]) -> Iterator[int]:
    return (
        n
        for n in range(start, 2**20, 2)
        if n not in taken and all(n % d for d in range(3, math.isqrt(n) + 1, 2))
    )
