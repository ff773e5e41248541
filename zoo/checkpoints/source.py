"""A checkpoint as a source of weights."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from specs.model.model import Model
from zoo.checkpoints.matching import TensorLocation, match
from zoo.families.common.tensors import Tensors
from zoo.weights.blocks import Codes, Quantized
from zoo.weights.files import TensorFiles
from zoo.weights.hub import place_text
from zoo.weights.low_rank import MergedTensor
from zoo.weights.memory_pages import in_own_pages
from zoo.weights.source import WeightError, WeightSource
from zoo.weights.stored import (
    Packed,
    StoredCodes,
    StoredTensor,
    is_finite,
    narrowed,
    read_into,
    read_pieces,
)

PIECE = 2**22
"""Values converted at a time."""

CODES = 2**20
"""Codes unpacked at a time."""


class CheckpointWeights(WeightSource):
    """The weights of a model from the files of a checkpoint with a family's names and layouts.

    ``ignored`` names the tensors that the spec does not use, such as another head's; ``unused`` are these and those that no
    model reads, by the names that checkpoints of the spec give them. Raises :class:`WeightError` at once
    where any tensor is missing, unused, or of the wrong shape or dtype.
    """

    def __init__(
        self,
        files: TensorFiles,
        names: Tensors,
        model: nn.Module,
        spec: Model,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        matched = match(files, names, model, spec)
        self.names = names
        self.dtype = dtype
        self.ignored: tuple[str, ...] = tuple(matched.ignored)
        self.unused = {
            names.full(name, spec.head.stored_kind): stored for name, stored in matched.unused.items()
        }
        self._locations, self._fixed = matched.locations, matched.fixed
        self.description = place_text(files.path)
        if self.ignored:
            more = ", ..." if len(self.ignored) > 3 else ""
            self.description += f", {len(self.ignored)} ignored: {', '.join(self.ignored[:3])}{more}"

    def pieces(self, name: str) -> Iterator[Tensor]:
        """Yield a parameter's values in row-major order, in flat pieces of whole rows."""
        if name in self._fixed:
            yield self._fixed[name].reshape(-1).to(self.dtype)
            return
        location = self._locations[name]
        for row, stored in enumerate(location.stored):
            for piece in self._read(location, row):
                yield self._finite(piece.reshape(-1), stored)

    @torch.no_grad()
    def whole(self, name: str, parameter: Tensor) -> Tensor:
        """As ``pieces``, read into place where possible: no other copy is held beside the whole."""
        location = self._locations.get(name)
        if location is not None and parameter.dtype == self.dtype:
            values = in_own_pages(parameter.shape, self.dtype)
            self._fill(values.view(-1), location)
            if is_finite(values):
                return values
        return super().whole(name, parameter)

    def _fill(self, flat: Tensor, location: TensorLocation) -> None:
        """Write the values of a parameter to a flat tensor in the dtype of results, unchecked."""
        for row, stored in enumerate(location.stored):
            extent = location.extent(row)
            if extent is not None and stored.dtype == self.dtype:
                count = extent[1] // self.dtype.itemsize
                read_into(flat[:count], stored.path, stored.name, extent[0])
                flat = flat[count:]
                continue
            for piece in self._read(location, row):
                flat[: piece.numel()].view(piece.shape).copy_(piece)
                flat = flat[piece.numel() :]

    def part(self, name: str, begin: int, end: int) -> Iterator[Tensor]:
        """As ``pieces``, without reading the rest of the file where that holds the values in order."""
        location = self._locations.get(name)
        extent = None if location is None or len(location.stored) > 1 else location.extent()
        if location is None or extent is None or location.stored[0].dtype is None:
            yield from super().part(name, begin, end)
            return
        (stored,), size = location.stored, location.stored[0].dtype.itemsize
        part = extent[0] + begin * size, (end - begin) * size
        for piece in read_pieces(stored.path, stored.name, location.stored[0].dtype, part, PIECE):
            yield self._finite(piece, stored)

    @staticmethod
    def _read(location: TensorLocation, row: int) -> Iterator[Tensor]:
        """Yield the values of a parameter, or of a row of it, in the file's dtype: flat where the file holds them in order."""
        stored, extent = location.stored[row], location.extent(row)
        if (codes := _codes_of(location)) is not None and codes.blocks.floats:  # never whole
            width = location.shapes[location.slot.index][-1]
            yield from (codes.blocks.restore(rows, width) for rows in codes.rows())
            return
        width = max(1, math.prod(location.shapes[location.slot.index][1:]))
        step = max(1, PIECE // width)
        if extent is not None and stored.dtype is not None:
            yield from read_pieces(stored.path, stored.name, stored.dtype, extent, step * width)
            return
        yield from location.values(row).split(step)

    def _finite(self, piece: Tensor, stored: StoredTensor) -> Tensor:
        values = piece.to(self.dtype)
        if is_finite(values):  # so are the originals
            return values
        if isinstance(stored, MergedTensor) and is_finite(stored.matrix.read().to(self.dtype)):
            raise stored.too_large()
        if is_finite(piece):
            return narrowed(piece, self.dtype, f"{stored.path}: {stored.name}")
        count = int((~torch.isfinite(piece)).sum())
        raise WeightError(
            f"{stored.path}: {stored.name} has NaN or infinite values ({count:,} of {piece.numel():,} checked)\n"
            "  Use a checkpoint from before they appeared."
        )

    def raw(self, name: str) -> tuple[Path, int, int] | None:
        """Return the file, offset and length in bytes where a parameter's values are stored as ``pieces`` yields them, or None."""
        if name in self._fixed:
            return None
        location = self._locations[name]
        (origin, *others), extent = location.stored, location.extent()
        if others or location.slot.field or extent is None or origin.dtype != self.dtype:
            return None
        return (origin.path, *extent)

    def codes(self, name: str) -> Codes | None:
        """Return the codes of a quantized matrix, or of stacked ones, in the parameter's order of rows; None for other tensors."""
        location = self._locations.get(name)
        return None if location is None else _codes_of(location)

    def format(self, name: str) -> str | None:
        """Return the quantized format of a stored parameter, or None."""
        location = self._locations.get(name)
        origin = None if location is None else location.stored[0]
        return origin.format if isinstance(origin, Packed) else None


def _codes_of(location: TensorLocation) -> Codes | None:
    """The codes of a matrix, or of stacked ones; None for other tensors."""
    if len(location.stored) > 1 or location.slot.field:
        return None
    (origin,), shape = location.stored, location.shapes[location.slot.index]
    stored = origin.codes() if isinstance(origin, Packed) else None
    if stored is None or len(stored.lines) != len(shape):
        return None
    order = location.order(stored.lines)
    if order is None:
        return None
    rows = functools.partial(_in_order, stored, order, max(1, CODES // shape[-1]))
    return Codes(stored.blocks, rows, fit_half=stored.fit_half)


def _in_order(stored: StoredCodes, order: Tensor, step: int) -> Iterator[Quantized]:
    """Yield rows of a stored matrix in a given order, several at a time: adjacent rows are read together."""
    for index in order.split(step):
        start, stop = int(index.min()), int(index.max()) + 1
        rows = stored.rows(start, stop)
        moved = index - start
        plain = stop - start == len(index) and bool((moved == torch.arange(len(index))).all())
        yield rows if plain else rows.rows(moved)
