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
"""Values that are rounded at a time: as many as stay in a processor's cache on the way."""

Layout = Literal["blocks", "rows", "columns"]


@dataclass(frozen=True)
class QuantizedMatrix:
    """Matrices of the same width K one below the other, N rows in all, as values, scales, and zero points where they vary.

    Layouts: blocks, as MatMulNBits and GatherBlockQuantized have them (N rows of whole blocks, in bytes);
    rows, N K of int8; columns, K N of int8, int4 or (with zero points) uint4.  The zero points of int8 and int4 are 0.
    """

    names: tuple[str, ...]
    width: int
    blocks: Blocks
    layout: Layout
    dtype: torch.dtype = torch.float32

    @property
    def count(self) -> int:
        """How many tensors it comes to."""
        return 2 if self.blocks.symmetric else 3

    def raw(self, source: WeightSource) -> None:
        """Nowhere."""

    def pieces(self, source: WeightSource) -> Iterator[tuple[Tensor, ...]]:
        parts: Iterator[Quantized] = (rows for name in self.names for rows in self._rounded(source, name))
        if self.layout == "columns":
            parts = iter([_joined(parts)])  # a column is in all rows
        for part in parts:
            yield self._tensors(part)

    def _rounded(self, source: WeightSource, name: str) -> Iterator[Quantized]:
        """The codes that the source has of a weight, where they are such blocks, or else the nearest ones."""
        codes = source.codes(name)
        if codes is not None and codes.blocks == self.blocks:
            return codes.rows()
        return (
            self.blocks.quantize(rows, self.dtype) for rows in whole_rows(source.pieces(name), self.width)
        )

    def _tensors(self, part: Quantized) -> tuple[Tensor, ...]:
        codes, scales, zeros = part.codes.flatten(1), part.scales.to(self.dtype), part.zeros
        if self.layout == "blocks":
            codes, zeros = self._packed(codes), self._packed(zeros)
        else:
            codes = codes[:, : self.width]
            if self.blocks.symmetric:
                codes = codes ^ self.blocks.middle  # code - middle in two's complement
            if self.layout == "columns":
                codes, scales, zeros = codes.t(), scales.t(), zeros.t()
            if self.blocks.bits == 4:
                codes = _in_pairs(codes & 15)
                zeros = _in_pairs(zeros)
        tensors = (codes, scales, zeros)[: self.count]
        return tuple(tensor.reshape(-1).contiguous() for tensor in tensors)

    def _packed(self, codes: Tensor) -> Tensor:
        """Rows of codes in whole bytes, the first in the lower bits: N K -> N, K or half of it."""
        if self.blocks.bits == 8:
            return codes
        even = torch.nn.functional.pad(codes, (0, codes.shape[1] % 2))
        return even[:, 0::2] | (even[:, 1::2] << 4)

    def restored(self, tensors: Sequence[Tensor]) -> Tensor:
        count, bits = self.blocks.count(self.width), self.blocks.bits
        scales = tensors[1].view(self.dtype)
        rows = scales.numel() // count
        size = self.blocks.size_in(self.width)
        if self.layout == "blocks":
            codes = self._unpacked(tensors[0], rows, count * size)
            zeros = (
                torch.full((rows, count), self.blocks.middle, dtype=torch.uint8)
                if self.blocks.symmetric
                else self._unpacked(tensors[2], rows, count)
            )
            scales = scales.view(rows, count)
        else:
            shape = (self.width, rows) if self.layout == "columns" else (rows, self.width)
            codes = (_apart(tensors[0], shape[0] * shape[1]) if bits == 4 else tensors[0]).view(shape)
            if self.blocks.symmetric:
                codes = (codes ^ self.blocks.middle) & (2 * self.blocks.middle - 1)
                zeros = torch.full((rows, count), self.blocks.middle, dtype=torch.uint8)
            else:
                zeros = _apart(tensors[2], rows * count).view(count, rows).t()
            if self.layout == "columns":
                codes, scales = codes.t(), scales.view(count, rows).t()
            scales = scales.reshape(rows, count)
            codes = torch.nn.functional.pad(codes, (0, count * size - self.width))
        quantized = Quantized(codes.reshape(rows, count, size), scales, zeros)
        return self.blocks.restore(quantized, self.width).reshape(-1)

    def _unpacked(self, data: Tensor, rows: int, width: int) -> Tensor:
        if self.blocks.bits == 8:
            return data.view(rows, width)
        return torch.stack((data & 15, data >> 4), -1).view(rows, -1)[:, :width]


def whole_rows(pieces: Iterable[Tensor], width: int) -> Iterator[Tensor]:
    """Flat pieces of a matrix as some rows at a time, N K."""
    rest = torch.empty(0)
    step = max(1, VALUES // width) * width
    for piece in pieces:
        joined = torch.cat((rest.to(piece.dtype), piece)) if rest.numel() else piece
        end = joined.numel() // width * width
        for start in range(0, end, step):
            yield joined[start : min(start + step, end)].view(-1, width)
        rest = joined[end:]


def _joined(parts: Iterable[Quantized]) -> Quantized:
    every = list(parts)
    return Quantized(
        torch.cat([part.codes for part in every]),
        torch.cat([part.scales for part in every]),
        torch.cat([part.zeros for part in every]),
    )


def _in_pairs(codes: Tensor) -> Tensor:
    """4-bit codes in row-major order, two in a byte, the first in the lower bits."""
    flat = codes.reshape(-1)
    even = torch.nn.functional.pad(flat, (0, flat.numel() % 2))
    return even[0::2] | (even[1::2] << 4)


def _apart(data: Tensor, count: int) -> Tensor:
    return torch.stack((data & 15, data >> 4), -1).view(-1)[:count]
