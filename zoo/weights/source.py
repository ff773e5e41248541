"""The interface of every source of weights."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from specs.base.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

    from zoo.weights.blocks import Codes
    from zoo.weights.input_scales import InputScales


class WeightError(UserError):
    """Weights are missing, truncated, of the wrong shape, or of an unknown format."""


class WeightSource(Protocol):
    """The weights of a model by parameter name."""

    description: str

    def pieces(self, name: str) -> Iterator[Tensor]:
        """Yield a parameter's values in row-major order, in consecutive flat pieces, so that none need be held whole.

        Raises :class:`WeightError`, naming the parameter, where it cannot be read.
        """
        ...

    def whole(self, name: str, parameter: Tensor) -> Tensor:
        """The values of a parameter in its shape and dtype; a single whole piece is not copied. Raises as :meth:`pieces`."""
        pieces = self.pieces(name)
        first = next(pieces)
        if first.numel() == parameter.numel() and first.dtype == parameter.dtype:
            return first.view(parameter.shape)
        values = first.new_empty(parameter.shape, dtype=parameter.dtype)
        flat, end = values.view(-1), 0
        for piece in itertools.chain([first], pieces):
            flat[end : end + piece.numel()] = piece
            end += piece.numel()
        return values

    def part(self, name: str, begin: int, end: int) -> Iterator[Tensor]:
        """Yield the values from index ``begin`` up to ``end`` of those that :meth:`pieces` yields, in flat pieces."""
        start = 0
        for piece in self.pieces(name):
            first, last = max(begin - start, 0), min(end - start, piece.numel())
            if first < last:
                yield piece[first:last]
            start += piece.numel()
            if start >= end:
                return

    def raw(self, name: str) -> tuple[Path, int, int] | None:
        """The file, offset and length of the parameter's bytes, where a file holds them in the wanted form."""
        return None

    def codes(self, name: str) -> Codes | None:
        """The codes in which to store a matrix, such as a checkpoint's. None for other tensors."""
        return None

    def input_scales(self, names: tuple[str, ...]) -> InputScales | None:
        """How the inputs of a product with these stacked weights are rounded. None without calibration."""
        return None

    def format(self, name: str) -> str | None:
        """The quantized format in which the source stores a parameter, such as Q4_1; None for float formats."""
        return None

    @property
    def calibrated(self) -> Sequence[str]:
        """The names of the weights that are rounded for their inputs."""
        return ()
