"""What the tensors of the data file are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from torch import Tensor

from zoo.weights.source import WeightSource


class Content(Protocol):
    """How a tensor of the data file comes from the weights of a model."""

    def pieces(self, source: WeightSource) -> Iterator[Tensor]:
        """Its values in row-major order, in consecutive flat pieces."""
        ...

    def raw(self, source: WeightSource) -> list[tuple[Path, int, int]] | None:
        """File, offset and length of all its bytes in order, where they lie in files just as they are wanted."""
        ...


@dataclass(frozen=True)
class Stored:
    """Weights of the model, one after another."""

    names: tuple[str, ...]

    def pieces(self, source: WeightSource) -> Iterator[Tensor]:
        for name in self.names:
            yield from source.pieces(name)

    def raw(self, source: WeightSource) -> list[tuple[Path, int, int]] | None:
        places = [source.raw(name) for name in self.names]
        return None if None in places else places  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class Table:
    """Values that are no weights, such as the cosines of all positions."""

    values: Tensor

    def pieces(self, source: WeightSource) -> Iterator[Tensor]:
        yield self.values.reshape(-1)

    def raw(self, source: WeightSource) -> None:
        """Nowhere."""
