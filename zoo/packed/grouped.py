"""Matrices of codes with grouped columns, each group with a scale and perhaps a zero point: the common part of their
formats."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from pathlib import Path

import torch
from torch import Tensor

from zoo.packed.matrix import (
    WHOLE,
    PackedMatrix,
    block_size_of,
    check_kind,
    dequantized,
    in_blocks,
    values_of,
)
from zoo.weights.blocks import Blocks, Quantized
from zoo.weights.source import WeightError
from zoo.weights.stored import FLOATS, StoredCodes, StoredTensor


class GroupedMatrix(ABC):
    """One matrix of N rows and K columns, in groups of ``group`` columns; a group below 1 is a whole row.

    Its format says where the codes, the scales and the zero points of the G groups are.
    """

    scales: StoredTensor

    def __init__(
        self, path: Path, module: str, form: str, bits: int, shape: tuple[int, int], group: int
    ) -> None:
        self.path, self.name, self.form, self.bits = path, f"{module}.weight", form, bits
        self.rows, self.width = shape
        self.group = group if group > 0 else self.width
        self.groups = -(-self.width // self.group)

    @abstractmethod
    def codes(self) -> Tensor:
        """Unsigned codes, N K."""

    @abstractmethod
    def scale(self) -> Tensor:
        """N G."""

    @abstractmethod
    def zeros(self) -> Tensor | None:
        """N G, or None where all are the middle of the codes."""

    def listed(self, index: StoredTensor) -> Tensor:
        """The group of each column as a tensor lists them, K.  Raises :class:`WeightError` for groups that there are not."""
        check_kind(index, WHOLE)
        groups = values_of(index).long()
        if groups.numel() and not 0 <= int(groups.min()) <= int(groups.max()) < self.groups:
            wrong = groups[(groups < 0) | (groups >= self.groups)]
            raise WeightError(
                f"{index.path}: {index.name} must have groups from 0 to {self.groups - 1}\n  value: {int(wrong[0])}\n"
                "  Use config.json and tensors from the same checkpoint."
            )
        return groups

    def order(self) -> Tensor:
        """The group of each column."""
        return torch.arange(self.width) // self.group

    def block_size(self) -> int | None:
        """The number of columns that share a scale in the blocks of the matrix; None for a whole row."""
        return block_size_of(self.group, self.width)

    @functools.cached_property
    def blocks(self) -> Blocks | None:
        """The blocks of the matrix; None where groups are in another order, or zero points exceed the range of codes."""
        zeros = self.zeros()
        beyond = zeros is not None and int(zeros.max()) >= 2**self.bits
        if beyond or not torch.equal(self.order(), torch.arange(self.width) // self.group):
            return None
        return Blocks(self.bits, self.block_size(), symmetric=zeros is None, half=self.scales.kind == "F16")

    def quantized(self) -> Quantized:
        """The codes in their blocks."""
        assert self.blocks is not None
        zeros = self.zeros()
        narrow = None if zeros is None else zeros.to(torch.uint8)
        return in_blocks(self.codes(), self.scale(), narrow, self.group, self.blocks)

    def values(self) -> Tensor:
        """The dequantized values, N K in float32."""
        order, zeros = self.order(), self.zeros()
        shifts = 2 ** (self.bits - 1) if zeros is None else zeros[:, order]
        return dequantized(self.codes(), self.scale()[:, order], shifts)

    def packed(self) -> PackedMatrix:
        """As one tensor under its float name.  Raises :class:`WeightError` for scales that are not floats."""
        check_kind(self.scales, FLOATS)
        shape = (self.rows, self.width)
        return PackedMatrix(self.path, self.name, self.form, shape, self.values, self._stored_codes)

    def _stored_codes(self) -> StoredCodes | None:
        if self.blocks is None:
            return None
        whole = functools.cache(self.quantized)
        lines = (self.rows, 1)
        return StoredCodes(self.blocks, lines, lambda start, stop: whole().rows(torch.arange(start, stop)))


def unless_middle(zeros: Tensor, bits: int) -> Tensor | None:
    """Zero points, or None where all are the middle of the range of codes."""
    return None if bool((zeros == 2 ** (bits - 1)).all()) else zeros
