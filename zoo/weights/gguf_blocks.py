"""The block formats of GGUF as codes, scales and minima, without rounding.

The layouts are those of ``ggml-quants.h``: https://github.com/ggml-org/ggml/blob/master/src/ggml-quants.c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from zoo.weights.blocks import Blocks, Quantized

FIVE_BITS = 112
"""The code of 0 where 5-bit codes are stored in 8 bits: their middle, 16, becomes the middle of 8 bits, 128."""


@dataclass(frozen=True)
class BlockFormat:
    """A format: its blocks, and the function from N rows of bytes to codes."""

    blocks: Blocks
    unpack: Callable[[Tensor], Quantized]


def _halves(data: Tensor) -> Tensor:
    """Pairs of bytes as float16 numbers: ... 2n -> ... n."""
    return data.contiguous().view(torch.float16)


def _nibbles(data: Tensor) -> Tensor:
    """The lower and the upper 4 bits of bytes: ... n -> ... 2 n."""
    return torch.stack((data & 15, data >> 4), -2)


def _blocks(rows: Tensor, size: int) -> Tensor:
    return rows.unflatten(1, (-1, size))  # N B bytes


def _quantized(codes: Tensor, scales: Tensor, zero: int, minima: Tensor | None = None) -> Quantized:
    return Quantized(codes, scales, torch.full(scales.shape, zero, dtype=torch.uint8), minima)


def _q4_0(rows: Tensor) -> Quantized:
    """float16 scale, 16 bytes: the lower 4 bits are the first 16 values."""
    data = _blocks(rows, 18)
    return _quantized(_nibbles(data[..., 2:]).flatten(2), _halves(data[..., :2])[..., 0], 8)


def _q4_1(rows: Tensor) -> Quantized:
    """float16 scale and minimum, 16 bytes."""
    data = _blocks(rows, 20)
    head = _halves(data[..., :4])
    return _quantized(_nibbles(data[..., 4:]).flatten(2), head[..., 0], 0, head[..., 1])


def _fifth(bits: Tensor) -> Tensor:
    """The fifth bits of 32 values from 4 bytes: N B 4 -> N B 32."""
    shifts = torch.arange(8, dtype=torch.uint8)
    return ((bits[..., None] >> shifts) & 1).flatten(2)


def _q5_0(rows: Tensor) -> Quantized:
    """float16 scale, 4 bytes of fifth bits, 16 bytes."""
    data = _blocks(rows, 22)
    codes = _nibbles(data[..., 6:]).flatten(2) | (_fifth(data[..., 2:6]) << 4)
    return _quantized(codes + FIVE_BITS, _halves(data[..., :2])[..., 0], 128)


def _q5_1(rows: Tensor) -> Quantized:
    """float16 scale and minimum, 4 bytes of fifth bits, 16 bytes."""
    data = _blocks(rows, 24)
    head = _halves(data[..., :4])
    codes = _nibbles(data[..., 8:]).flatten(2) | (_fifth(data[..., 4:8]) << 4)
    return _quantized(codes + FIVE_BITS, head[..., 0], FIVE_BITS, head[..., 1])


def _q8_0(rows: Tensor) -> Quantized:
    """float16 scale, 32 signed bytes."""
    data = _blocks(rows, 34)
    return _quantized(data[..., 2:] ^ 128, _halves(data[..., :2])[..., 0], 128)


def _scales_minima(data: Tensor) -> tuple[Tensor, Tensor]:
    """The scales and minima of K-quants in 4 and 5 bits, from two float16 numbers and 12 bytes of 6-bit numbers."""
    head = _halves(data[..., :4]).float()  # N B 2
    first, second, mixed = data[..., 4:16].split(4, -1)
    scales = torch.cat((first & 63, (mixed & 15) | ((first >> 2) & 48)), -1)  # N B 8
    minima = torch.cat((second & 63, (mixed >> 4) | ((second >> 2) & 48)), -1)
    return (head[..., :1] * scales).flatten(1), -(head[..., 1:] * minima).flatten(1)


def _q4_k(rows: Tensor) -> Quantized:
    """float16 factors of scales and minima, 12 bytes with eight of each, 128 bytes."""
    data = _blocks(rows, 144)
    scales, minima = _scales_minima(data)
    codes = _nibbles(data[..., 16:].unflatten(-1, (4, 32)))  # N B 4 2 32
    return _quantized(codes.flatten(1, 3), scales, 0, minima)


def _q5_k(rows: Tensor) -> Quantized:
    """As Q4_K, with 32 bytes of fifth bits before the 128 bytes: bit i belongs to the i-th 32 values."""
    data = _blocks(rows, 176)
    scales, minima = _scales_minima(data)
    low = _nibbles(data[..., 48:].unflatten(-1, (4, 32))).flatten(2, 3)  # N B 8 32
    high = (data[..., None, 16:48] >> torch.arange(8, dtype=torch.uint8)[:, None]) & 1
    return _quantized((low | (high << 4)).flatten(1, 2) + FIVE_BITS, scales, FIVE_BITS, minima)


def _q6_k(rows: Tensor) -> Quantized:
    """128 bytes of lower 4 bits, 64 bytes of upper 2 bits, 16 signed scales, their float16 factor."""
    data = _blocks(rows, 210)
    low = _nibbles(data[..., :128].unflatten(-1, (2, 64))).unflatten(-1, (2, 32)).flatten(3, 4)  # N B 2 4 32
    shifts = 2 * torch.arange(4, dtype=torch.uint8)[:, None]
    high = (data[..., 128:192].unflatten(-1, (2, 1, 32)) >> shifts) & 3
    codes = (low | (high << 4)).flatten(2).unflatten(2, (16, 16)).flatten(1, 2)
    scales = _halves(data[..., 208:]).float() * data[..., 192:208].view(torch.int8)
    return _quantized(codes + 96, scales.flatten(1), 128)


FORMATS = {
    "Q4_0": BlockFormat(Blocks(4, 32, half=True), _q4_0),
    "Q4_1": BlockFormat(Blocks(4, 32, symmetric=False, half=True, base=0), _q4_1),
    "Q5_0": BlockFormat(Blocks(8, 32, half=True), _q5_0),
    "Q5_1": BlockFormat(Blocks(8, 32, symmetric=False, half=True, base=FIVE_BITS), _q5_1),
    "Q8_0": BlockFormat(Blocks(8, 32, half=True), _q8_0),
    "Q4_K": BlockFormat(Blocks(4, 32, symmetric=False, base=0), _q4_k),
    "Q5_K": BlockFormat(Blocks(8, 32, symmetric=False, base=FIVE_BITS), _q5_k),
    "Q6_K": BlockFormat(Blocks(8, 16), _q6_k),
}
"""The formats whose values are codes times scales, by ggml's names."""
