"""The content of tensors in the data file."""

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
    """The recipe for tensors of the data file: one tensor, or several from a single pass over a model's weights."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the source weights."""
        ...

    def pieces(self, source: WeightSource) -> Iterator[tuple[Tensor, ...]]:
        """Yield the values of each tensor in row-major order, in consecutive flat pieces."""
        ...

    def raw(self, source: WeightSource) -> list[tuple[Path, int, int]] | None:
        """Return the file, offset and length of each part of a single tensor, if a file already holds it in this form;
        otherwise None."""
        ...

    def restored(self, tensors: Sequence[Tensor]) -> Tensor:
        """Recover the source weights from the stored tensors: concatenated, flat, in float32."""
        ...


@dataclass(frozen=True)
class StoredContent:
    """Weights of the model, concatenated, in one dtype.

    ``rounded`` is the dtype of another copy: values are rounded to it first, so that both copies agree.
    """

    names: tuple[str, ...]
    dtype: torch.dtype = torch.float32
    rounded: torch.dtype | None = None

    def pieces(self, source: WeightSource) -> Iterator[tuple[Tensor, ...]]:
        for name in self.names:
            for piece in source.pieces(name):
                yield (piece.to(self.rounded or self.dtype).to(self.dtype),)

    def raw(self, source: WeightSource) -> list[tuple[Path, int, int]] | None:
        if self.dtype != torch.float32 or self.rounded:  # sources give values in float32
            return None
        places = [source.raw(name) for name in self.names]
        return None if None in places else places  # type: ignore[return-value]

    def restored(self, tensors: Sequence[Tensor]) -> Tensor:
        return tensors[0].view(self.dtype).to(torch.float32)


@dataclass(frozen=True, eq=False)
class Computed:
    """Values other than weights, such as the cosines of all positions: computed in float32 when they are written."""

    make: Callable[[], Tensor]
    dtype: torch.dtype

    @property
    def names(self) -> tuple[str, ...]:
        return ()

    def pieces(self, source: WeightSource) -> Iterator[tuple[Tensor, ...]]:
        yield (self.make().reshape(-1).to(self.dtype),)

    def raw(self, source: WeightSource) -> None:
        """None: no file holds computed values."""

    def restored(self, tensors: Sequence[Tensor]) -> Tensor:
        """Empty: no weight is stored in it."""
        return torch.empty(0)
