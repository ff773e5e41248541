"""MXFP4 (OCP Microscaling, 2023), in which GPT-OSS publishes its experts.

``*_blocks`` E N B 16 are bytes with two 4-bit floats each, the first in the lower bits; ``*_scales`` E N B the exponents of
their 32 values plus 127.  Values are exact in float32; the matrices of experts are stored d_in x d_out.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from zoo.packed.matrix import PackedMatrix, check_kind, check_rank, check_shape, values_of
from zoo.weights.blocks import Blocks, Quantized
from zoo.weights.float4 import apart, decoded
from zoo.weights.source import WeightError
from zoo.weights.stored import StoredCodes, StoredTensor, read_bytes

SIZE = 32
"""The values of a block."""

HALF = 127 + 13
"""The largest stored exponent with which all values are in the range of float16: 6 * 2^13 is."""


def read_mxfp4(
    tensors: Mapping[str, StoredTensor], config: Mapping[str, Any], where: str
) -> Iterator[tuple[str, StoredTensor | None]]:
    """The experts of a GPT-OSS checkpoint, and None for the tensors that they consist of."""
    for name, blocks in tensors.items():
        if not name.endswith("_blocks"):
            continue
        full = name.removesuffix("_blocks")
        scales = tensors.get(f"{full}_scales")
        if scales is None:
            raise WeightError(
                f"{blocks.path}: {full}_scales is missing next to {name}\n  Download the checkpoint again."
            )
        check_rank(blocks, 4)
        for stored in (blocks, scales):
            check_kind(stored, ("U8",))
        experts, rows, count, _ = blocks.shape
        check_shape(scales, (experts, rows, count), f"{name} has {count} blocks in each of {rows} rows")
        check_shape(blocks, (experts, rows, count, SIZE // 2), "blocks have 32 values of 4 bits")
        yield name, None
        yield scales.name, None
        yield full, _Experts(blocks, scales).packed(full)


@dataclass(frozen=True)
class _Experts:
    """The matrices of all experts: pairs of codes in bytes, E N B 16, and exponents, E N B."""

    pairs: StoredTensor
    scales: StoredTensor

    def packed(self, name: str) -> PackedMatrix:
        """As one tensor under its float name, E d_in d_out."""
        experts, rows, count = self.scales.shape
        shape = (experts, count * SIZE, rows)
        return PackedMatrix(self.pairs.path, name, "MXFP4", shape, self._values, lambda: self._codes)

    def _values(self) -> Tensor:
        experts, rows, count = self.scales.shape
        values = torch.empty(experts, count * SIZE, rows)
        for pairs, scales, matrix in zip(values_of(self.pairs), values_of(self.scales), values, strict=True):
            exponents = scales.int() - 127
            matrix.copy_(torch.ldexp(decoded(apart(pairs)), exponents[..., None]).flatten(1).t())
        return values

    @property
    def _codes(self) -> StoredCodes:
        """The codes, whose rows are the columns of the tensor under its float name."""
        experts, rows, _ = self.scales.shape
        blocks = Blocks(4, SIZE, half=True, floats=True)
        return StoredCodes(blocks, (experts, 1, rows), self._rows, lambda: self._fit_half)

    @functools.cached_property
    def _fit_half(self) -> bool:
        return int(values_of(self.scales).max()) <= HALF

    def _rows(self, start: int, stop: int) -> Quantized:
        """The codes of rows of the experts, one after another, without reading others."""
        read = functools.partial(_lines, start=start, stop=stop)
        codes, scales = apart(read(self.pairs)), read(self.scales)
        count = self.scales.shape[-1]
        return Quantized(
            codes.view(-1, count, SIZE), scales.view(torch.float8_e8m0fnu), torch.zeros_like(scales)
        )


def _lines(stored: StoredTensor, start: int, stop: int) -> Tensor:
    """Some rows of the experts, whose axes are the first two of a tensor of bytes: N K."""
    assert stored.extent is not None
    width = math.prod(stored.shape[2:])
    extent = stored.extent[0] + start * width, (stop - start) * width
    return read_bytes(stored.path, stored.name, extent).view(-1, width)
