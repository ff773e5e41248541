"""Blocks of few-bit codes: each block of a row of a matrix has its own scale, and perhaps its own zero point or minimum."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo.weights import float4


@dataclass(frozen=True)
class Quantized:
    """Quantized rows: unsigned codes N B S, and scales, zero points and (where blocks have them) minima N B."""

    codes: Tensor
    scales: Tensor
    zeros: Tensor
    minima: Tensor | None = None

    @classmethod
    def joined(cls, parts: Iterable[Quantized]) -> Quantized:
        """Stack rows."""
        every = list(parts)
        minima = [part.minima for part in every if part.minima is not None]
        return cls(
            torch.cat([part.codes for part in every]),
            torch.cat([part.scales for part in every]),
            torch.cat([part.zeros for part in every]),
            torch.cat(minima) if minima else None,
        )

    def rows(self, index: Tensor) -> Quantized:
        """Some of the rows, in the order of an index."""
        minima = None if self.minima is None else self.minima[index]
        return Quantized(self.codes[index], self.scales[index], self.zeros[index], minima)


@dataclass(frozen=True)
class Blocks:
    """The layout of blocks: a value is (code - zero point) * scale + minimum, with one scale per ``size`` values of a
    row, or per row (None).

    Symmetric zero points are half the code range; asymmetric ones are the code of 0 in each block. Blocks with a
    float minimum have the zero point ``base`` throughout, the code of the minimum. ``half``: scales and minima are
    float16 numbers, otherwise float32. Scales of symmetric blocks have either sign, unless they are ``positive``.

    ``floats``: codes are 4-bit floats without a zero point, and scales are powers of 2 (MXFP4: OCP Microscaling, 2023); ``half``
    then says that the range of float16 includes the largest values.
    """

    bits: int
    size: int | None
    symmetric: bool = True
    half: bool = False
    base: int | None = None
    positive: bool = False
    floats: bool = False

    @property
    def middle(self) -> int:
        """The symmetric zero point."""
        return 1 << (self.bits - 1)

    @property
    def last(self) -> int:
        """The highest code."""
        return 2 * self.middle - 1

    @property
    def has_zeros(self) -> bool:
        """Whether each block has its own integer zero point."""
        return not self.symmetric and self.base is None

    @property
    def stored(self) -> torch.dtype:
        """The narrowest dtype that holds the scales and minima exactly."""
        if self.floats:
            return torch.float8_e8m0fnu
        return torch.float16 if self.half else torch.float32

    def size_in(self, width: int) -> int:
        """Values per block of a row."""
        return width if self.size is None else self.size

    def count(self, width: int) -> int:
        """Blocks per row; the last is padded."""
        return -(-width // self.size_in(width))

    def divides(self, width: int) -> bool:
        """Whether a row of ``width`` values is in whole blocks."""
        return width % self.size_in(width) == 0

    def quantize(self, rows: Tensor, dtype: torch.dtype = torch.float32) -> Quantized:
        """The nearest codes to the values of rows, N K, with scales in a dtype."""
        blocks = self.split(rows)
        if self.floats:
            return self._quantize_to_floats(blocks)
        low, high = blocks.amin(-1), blocks.amax(-1)  # N B; several times as fast as aminmax
        dtype = torch.float16 if self.half else dtype
        if self.base is not None:
            return self._quantize_above(blocks, low, high, dtype)
        return self.rounded(blocks, *self.scaled(low, high, dtype))

    def split(self, rows: Tensor) -> Tensor:
        """Rows as blocks in float32, the last zero-padded: N K -> N B S."""
        size = self.size_in(rows.shape[1])
        return F.pad(rows.to(torch.float32), (0, -rows.shape[1] % size)).unflatten(1, (-1, size))

    def scaled(self, low: Tensor, high: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Scales in a dtype and zero points of blocks with values from ``low`` to ``high``: N B each."""
        if self.symmetric and self.positive:
            scales = torch.maximum(high / (self.middle - 1), low / -self.middle)
        elif self.symmetric:  # the value furthest from 0 gets the code furthest from the middle, 0
            scales = torch.where(high > -low, high, low) / -self.middle
        else:
            low, high = low.clamp(max=0), high.clamp(min=0)
            scales = (high - low) / self.last
        scales = scales.to(dtype)
        scales = torch.where(scales == 0, 1.0, scales)
        if self.symmetric:
            return scales, torch.full_like(scales, self.middle, dtype=torch.uint8)
        return scales, (-low / scales.to(torch.float32)).round_().clamp_(0, self.last).to(torch.uint8)

    def rounded(self, blocks: Tensor, scales: Tensor, zeros: Tensor) -> Quantized:
        """The nearest codes to blocks, N B S."""
        codes = blocks / scales[..., None].to(torch.float32)
        codes = codes.add_(zeros[..., None]).round_().clamp_(0, self.last)
        return Quantized(codes.to(torch.uint8), scales, zeros)

    def _quantize_above(self, blocks: Tensor, low: Tensor, high: Tensor, dtype: torch.dtype) -> Quantized:
        """The nearest codes counted from the minimum of each block."""
        assert self.base is not None
        last = 2 * (self.middle - self.base) - 1
        minima = low.to(dtype)
        scales = ((high - minima.float()) / last).to(dtype)
        divisors = torch.where(scales == 0, 1.0, scales.float())
        codes = ((blocks - minima.float()[..., None]) / divisors[..., None]).round_().clamp_(0, last)
        zeros = torch.full_like(scales, self.base, dtype=torch.uint8)
        return Quantized(codes.to(torch.uint8) + self.base, scales, zeros, minima)

    def _quantize_to_floats(self, blocks: Tensor) -> Quantized:
        """The nearest codes under the least power of 2 that brings every value of a block into their range."""
        largest = blocks.abs().amax(-1) / float4.LARGEST
        mantissa, exponent = torch.frexp(largest)
        scales = torch.ldexp(torch.ones_like(largest), exponent - (mantissa == 0.5).int())
        codes = float4.encoded(blocks / scales[..., None])
        return Quantized(codes, scales.to(self.stored), torch.zeros_like(scales, dtype=torch.uint8))

    def restore(self, quantized: Quantized, width: int) -> Tensor:
        """The dequantized values: N K in float32."""
        return self.values(quantized).flatten(1)[:, :width]

    def values(self, quantized: Quantized) -> Tensor:
        """The dequantized values: N B S in float32."""
        if self.floats:
            return float4.decoded(quantized.codes) * quantized.scales[..., None].to(torch.float32)
        values = quantized.codes.to(torch.float32) - quantized.zeros[..., None].to(torch.float32)
        values = values * quantized.scales[..., None].to(torch.float32)
        return values if quantized.minima is None else values + quantized.minima[..., None].to(torch.float32)


@dataclass(frozen=True)
class Codes:
    """A quantized matrix: the layout of its blocks, and its rows in order, in pieces.

    ``multipliers``, K, are the factors applied to the columns before rounding (default: 1). ``fit_half`` reads whether float16 has the
    range of all 4-bit floats.
    """

    blocks: Blocks
    rows: Callable[[], Iterator[Quantized]]
    multipliers: Tensor | None = None
    fit_half: Callable[[], bool] = lambda: True

    def values(self, width: int) -> Tensor:
        """The dequantized values: N K in float32, for rows of K values."""
        values = torch.cat([self.blocks.restore(piece, width) for piece in self.rows()])
        return values if self.multipliers is None else values * self.multipliers
