"""What the tensors of the data file are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from zoo.weights.source import WeightSource

INT4, UINT4 = torch.int4, torch.uint4  # type: ignore[attr-defined]


class Content(Protocol):
    """How tensors of the data file come from the weights of a model: one tensor, or several from one reading."""

    @property
    def names(self) -> tuple[str, ...]:
        """The weights that it is made of."""
        ...

    def pieces(self, source: WeightSource) -> Iterator[tuple[Tensor, ...]]:
        """The values of each tensor in row-major order, in consecutive flat pieces."""
        ...

    def raw(self, source: WeightSource) -> list[tuple[Path, int, int]] | None:
        """File, offset and length of all bytes of a single tensor in order, where they lie in files as wanted."""
        ...

    def restored(self, tensors: Sequence[Tensor]) -> Tensor:
        """The values of its weights, one after another, from the bytes of each of its tensors: flat, in float32."""
        ...


@dataclass(frozen=True)
class Stored:
    """Weights of the model, one after another, in a dtype."""

    names: tuple[str, ...]
    dtype: torch.dtype = torch.float32

    def pieces(self, source: WeightSource) -> Iterator[tuple[Tensor, ...]]:
        for name in self.names:
            for piece in source.pieces(name):
                yield (piece.to(self.dtype),)

    def raw(self, source: WeightSource) -> list[tuple[Path, int, int]] | None:
        if self.dtype != torch.float32:  # in which sources give their values
            return None
        places = [source.raw(name) for name in self.names]
        return None if None in places else places  # type: ignore[return-value]

    def restored(self, tensors: Sequence[Tensor]) -> Tensor:
        return tensors[0].view(self.dtype).to(torch.float32)


@dataclass(frozen=True, eq=False)
class Computed:
    """Values that are no weights, such as the cosines of all positions, made in float32 when they are written in a dtype."""

    make: Callable[[], Tensor]
    dtype: torch.dtype

    @property
    def names(self) -> tuple[str, ...]:
        return ()

    def pieces(self, source: WeightSource) -> Iterator[tuple[Tensor, ...]]:
        yield (self.make().reshape(-1).to(self.dtype),)

    def raw(self, source: WeightSource) -> None:
        """Nowhere."""

    def restored(self, tensors: Sequence[Tensor]) -> Tensor:
        """There is no weight in it."""
        return torch.empty(0)
