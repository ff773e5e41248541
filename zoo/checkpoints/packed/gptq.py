"""GPTQ (Frantar et al., 2022) as AutoGPTQ and GPTQModel store it.

``qweight`` K/8 N and ``qzeros`` G N/8 are int32 words of codes; ``scales`` G N, and ``g_idx`` K, the group of each column.
The first version of the format stores zero points less 1.
"""

from __future__ import annotations

import functools
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

LEAVES = ("qweight", "qzeros", "scales", "g_idx")


def read_gptq(
    tensors: Mapping[str, Stored], config: Mapping[str, Any], where: str
) -> Iterator[tuple[str, Stored | None]]:
    """The matrices of a GPTQ checkpoint, and None for the tensors that they consist of."""
    bits = option(config, "bits", (4, 8), where)
    form = option(config, "checkpoint_format", ("gptq", "gptq_v2"), where, "gptq")
    group = config.get("group_size", -1)
    for module, parts in grouped_parts(tensors, LEAVES).items():
        yield from ((stored.name, None) for stored in parts.values())
        yield f"{module}.weight", _Gptq(module, parts, bits, group, form == "gptq").packed()


class _Gptq:
    """One matrix."""

    def __init__(self, module: str, parts: Parts, bits: int, group: int, less: bool) -> None:
        self.module, self.bits, self.less = module, bits, less
        self.words, self.zero_words = (part(parts, leaf, module) for leaf in ("qweight", "qzeros"))
        self.scales, self.index = part(parts, "scales", module), parts.get("g_idx")
        per_word = 32 // bits
        self.width, self.rows = self.words.shape[0] * per_word, self.words.shape[1]
        self.group = group if group > 0 else self.width
        groups = -(-self.width // self.group)
        because = f"{self.words.name} has {self.width} x {self.rows} codes, and group_size is {group}"
        check_shape(self.scales, (groups, self.rows), because)
        check_shape(self.zero_words, (groups, -(-self.rows // per_word)), because)
        if self.index is not None:
            check_shape(self.index, (self.width,), because)

    def packed(self) -> PackedMatrix:
        return PackedMatrix(
            self.words.path, f"{self.module}.weight", f"GPTQ {self.bits}-bit", (self.rows, self.width),
            self.values, self.blocks, self.quantized,
        )  # fmt: skip

    @functools.cached_property
    def zeros(self) -> Tensor:
        """The zero points, G N: with 1 added, they may need one bit more than codes have."""
        return unpacked(values_of(self.zero_words), self.bits, 1)[:, : self.rows].int() + self.less

    @functools.cached_property
    def order(self) -> Tensor:
        """The group of each column."""
        plain = torch.arange(self.width) // self.group
        return plain if self.index is None else values_of(self.index).long()

    def codes(self) -> Tensor:
        return unpacked(values_of(self.words), self.bits, 0).t()

    def blocks(self) -> Blocks | None:
        """None where columns are in groups of another order, or zero points beyond the codes."""
        plain = torch.equal(self.order, torch.arange(self.width) // self.group)
        if not plain or int(self.zeros.max()) >= 2**self.bits:
            return None
        middle = bool((self.zeros == 2 ** (self.bits - 1)).all())
        size = block_size_of(self.group, self.width)
        return Blocks(self.bits, size, symmetric=middle, half=self.scales.kind == "F16")

    def quantized(self) -> Quantized:
        blocks = self.blocks()
        assert blocks is not None
        zeros = None if blocks.symmetric else self.zeros.to(torch.uint8).t()
        return in_blocks(self.codes(), values_of(self.scales).t(), zeros, self.group, blocks)

    def values(self) -> Tensor:
        scales, zeros = values_of(self.scales).t(), self.zeros.t()
        return dequantized(self.codes(), scales[:, self.order], zeros[:, self.order])
