"""AWQ (Lin et al., 2023) as AutoAWQ stores it in its GEMM version.

``qweight`` K N/8 and ``qzeros`` G N/8 are int32 words with eight rows' codes in the order 0 2 4 6 1 3 5 7; ``scales`` G N.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from zoo.checkpoints.packed.matrix import (
    PackedMatrix,
    Parts,
    block_size_of,
    check_shape,
    dequantized,
    grouped_parts,
    in_blocks,
    option,
    part,
    unpacked,
    values_of,
)
from zoo.weights.blocks import Blocks, Quantized
from zoo.weights.stored import Stored

LEAVES = ("qweight", "qzeros", "scales")
PLACES = (0, 4, 1, 5, 2, 6, 3, 7)
"""Where in a word the codes of eight rows lie."""


def read_awq(
    tensors: Mapping[str, Stored], config: Mapping[str, Any], where: str
) -> Iterator[tuple[str, Stored | None]]:
    """The matrices of an AWQ checkpoint, and None for the tensors that they consist of."""
    option(config, "bits", (4,), where)
    option(config, "version", ("gemm", "GEMM"), where, "gemm")
    group = config.get("group_size", 128)
    for module, parts in grouped_parts(tensors, LEAVES).items():
        yield from ((stored.name, None) for stored in parts.values())
        yield f"{module}.weight", _Awq(module, parts, group).packed()


class _Awq:
    """One matrix."""

    def __init__(self, module: str, parts: Parts, group: int) -> None:
        self.module = module
        self.words, self.zero_words, self.scales = (part(parts, leaf, module) for leaf in LEAVES)
        self.width, self.rows = self.words.shape[0], self.words.shape[1] * 8
        self.group = group if group > 0 else self.width
        groups = -(-self.width // self.group)
        because = f"{self.words.name} has {self.width} x {self.rows} codes, and group_size is {group}"
        check_shape(self.scales, (groups, self.rows), because)
        check_shape(self.zero_words, (groups, self.words.shape[1]), because)

    def packed(self) -> PackedMatrix:
        return PackedMatrix(
            self.words.path, f"{self.module}.weight", "AWQ 4-bit", (self.rows, self.width),
            self.values, self.blocks, self.quantized,
        )  # fmt: skip

    @staticmethod
    def _in_order(words: Tensor) -> Tensor:
        apart = unpacked(words, 4, 1).unflatten(1, (-1, 8))
        return apart[:, :, list(PLACES)].flatten(1)

    def codes(self) -> Tensor:
        return self._in_order(values_of(self.words)).t()

    def zeros(self) -> Tensor:
        return self._in_order(values_of(self.zero_words)).t()

    def blocks(self) -> Blocks:
        middle = bool((self.zeros() == 8).all())
        size = block_size_of(self.group, self.width)
        return Blocks(4, size, symmetric=middle, half=self.scales.kind == "F16")

    def quantized(self) -> Quantized:
        blocks = self.blocks()
        zeros = None if blocks.symmetric else self.zeros()
        return in_blocks(self.codes(), values_of(self.scales).t(), zeros, self.group, blocks)

    def values(self) -> Tensor:
        order = torch.arange(self.width) // self.group
        scales, zeros = values_of(self.scales).t(), self.zeros()
        return dequantized(self.codes(), scales[:, order], zeros[:, order])
