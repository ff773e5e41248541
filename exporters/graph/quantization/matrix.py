"""Quantized matrices as tensors of the data file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from zoo.weights.blocks import Blocks, Quantized
from zoo.weights.source import WeightSource

VALUES = 2**17
"""The number of values rounded at a time: they fit a processor's cache."""

Layout = Literal["blocks", "rows", "columns"]


@dataclass(frozen=True)
class QuantizedMatrix:
    """Matrices of the same width K stacked to N rows, as values, scales, and zero points or minima if blocks have them.

    Layouts: blocks, the layout of MatMulNBits and GatherBlockQuantized (N rows of whole blocks, in bytes); rows, N K of
    int8; columns, K N of int8, int4 or (with zero points) uint8, uint4. The zero points of int8, of int4 and of blocks with
    minima are 0: their codes count from the middle (see :attr:`Blocks.base`).
    """

    names: tuple[str, ...]
    width: int
    blocks: Blocks
    layout: Layout
    dtype: torch.dtype = torch.float32

    @property
    def count(self) -> int:
        """The number of tensors."""
        return 2 if self.blocks.symmetric else 3

    @property
    def scale_dtype(self) -> torch.dtype:
        """The dtype of scales and minima in the file: float16 if that is exact and the graph can widen it once."""
        return self.blocks.stored if self.blocks.half and self.layout == "blocks" else self.dtype

    @property
    def centred(self) -> bool:
        """Whether codes count from the middle of their range."""
        return not self.blocks.has_zeros

    def raw(self, source: WeightSource) -> None:
        """None: no file holds a rounded matrix in this form."""

    def pieces(self, source: WeightSource) -> Iterator[tuple[Tensor, ...]]:
        """Yield the tensors of the data file, some rows at a time: codes, scales, and zero points or minima."""
        parts = self.parts(source)
        if self.layout == "columns":
            parts = iter([Quantized.joined(parts)])  # a column spans all rows
        for part in parts:
            yield self._tensors(part)

    def parts(self, source: WeightSource) -> Iterator[Quantized]:
        """Yield the codes of all matrices, row after row."""
        return (rows for name in self.names for rows in self.rounded(source, name))

    def rounded(self, source: WeightSource, name: str) -> Iterator[Quantized]:
        """The codes of a weight: the source's if they have these blocks, otherwise the nearest codes."""
        codes = source.codes(name)
        if codes is not None and codes.blocks == self.blocks:
            return codes.rows()
        return (
            self.blocks.quantize(rows, self.dtype) for rows in whole_rows(source.pieces(name), self.width)
        )

    def _tensors(self, part: Quantized) -> tuple[Tensor, ...]:
        codes, scales, zeros = part.codes.flatten(1), part.scales.to(self.scale_dtype), part.zeros
        minima = None if part.minima is None else part.minima.to(self.scale_dtype)
        if self.layout == "blocks":
            codes, zeros = self._packed(codes), self._packed(zeros)
        else:
            codes = codes[:, : self.width]
            if self.centred:
                codes = codes ^ self.blocks.middle  # code - middle in two's complement
            if self.layout == "columns":
                codes, scales, zeros = codes.t(), scales.t(), zeros.t()
                minima = None if minima is None else minima.t()
            if self.blocks.bits == 4:
                codes = _in_pairs(codes & 15)
                zeros = _in_pairs(zeros)
        tensors = (codes, scales, zeros if minima is None else minima)[: self.count]
        return tuple(tensor.reshape(-1).contiguous() for tensor in tensors)

    def _packed(self, codes: Tensor) -> Tensor:
        """Pack rows of codes into bytes, the first code in the lower bits: N K -> N K or N K/2."""
        if self.blocks.bits == 8:
            return codes
        even = torch.nn.functional.pad(codes, (0, codes.shape[1] % 2))
        return even[:, 0::2] | (even[:, 1::2] << 4)

    def restored(self, tensors: Sequence[Tensor]) -> Tensor:
        """The values that the tensors of the data file stand for, flat."""
        count, size = self.blocks.count(self.width), self.blocks.size_in(self.width)
        rows = tensors[1].view(self.scale_dtype).numel() // count
        scales, zeros, minima = self._per_block(tensors, rows, count)
        if self.layout == "blocks":
            codes = self._unpacked(tensors[0], rows, count * size)
        else:
            shape = (self.width, rows) if self.layout == "columns" else (rows, self.width)
            packed = self.blocks.bits == 4
            codes = (_apart(tensors[0], shape[0] * shape[1]) if packed else tensors[0]).view(shape)
            if self.centred:
                codes = (codes ^ self.blocks.middle) & (2 * self.blocks.middle - 1)
            codes = codes.t() if self.layout == "columns" else codes
            codes = torch.nn.functional.pad(codes, (0, count * size - self.width))
        quantized = Quantized(codes.reshape(rows, count, size), scales, zeros, minima)
        return self.blocks.restore(quantized, self.width).reshape(-1)

    def _per_block(
        self, tensors: Sequence[Tensor], rows: int, count: int
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Scales, zero points and minima, N B each."""

        def table(flat: Tensor) -> Tensor:
            return flat.view(count, rows).t() if self.layout == "columns" else flat.view(rows, count)

        scales = table(tensors[1].view(self.scale_dtype))
        if not self.blocks.has_zeros:
            middle = self.blocks.middle if self.blocks.base is None else self.blocks.base
            minima = None if self.blocks.base is None else table(tensors[2].view(self.scale_dtype))
            return scales, torch.full((rows, count), middle, dtype=torch.uint8), minima
        if self.layout == "blocks":
            return scales, self._unpacked(tensors[2], rows, count), None
        zeros = _apart(tensors[2], rows * count) if self.blocks.bits == 4 else tensors[2]
        return scales, table(zeros), None

    def _unpacked(self, data: Tensor, rows: int, width: int) -> Tensor:
        if self.blocks.bits == 8:
            return data.view(rows, width)
        return torch.stack((data & 15, data >> 4), -1).view(rows, -1)[:, :width]


def whole_rows(pieces: Iterable[Tensor], width: int) -> Iterator[Tensor]:
    """Regroup flat pieces of a matrix into groups of rows, N K."""
    rest = torch.empty(0)
    step = max(1, VALUES // width) * width
    for piece in pieces:
        joined = torch.cat((rest.to(piece.dtype), piece)) if rest.numel() else piece
        end = joined.numel() // width * width
        for start in range(0, end, step):
            yield joined[start : min(start + step, end)].view(-1, width)
        rest = joined[end:]


def _in_pairs(codes: Tensor) -> Tensor:
    """Pack 4-bit codes, in row-major order, two per byte, the first in the lower bits."""
    flat = codes.reshape(-1)
    even = torch.nn.functional.pad(flat, (0, flat.numel() % 2))
    return even[0::2] | (even[1::2] << 4)


def _apart(data: Tensor, count: int) -> Tensor:
    return torch.stack((data & 15, data >> 4), -1).view(-1)[:count]
