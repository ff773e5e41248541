"""AWQ (Lin et al., 2023) as AutoAWQ stores it in its GEMM version.

``qweight`` K N/8 and ``qzeros`` G N/8 are int32 words with eight rows' codes in the order 0 2 4 6 1 3 5 7; ``scales`` G N.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from zoo.packed.grouped import GroupedMatrix, unless_middle
from zoo.packed.matrix import (
    WORDS,
    Parts,
    check_kind,
    check_shape,
    field,
    grouped_parts,
    option,
    part,
    unpacked,
    values_of,
)
from zoo.weights.stored import StoredTensor

LEAVES = ("qweight", "qzeros", "scales")
PLACES = (0, 4, 1, 5, 2, 6, 3, 7)
"""The positions of eight rows' codes within a word."""


def read_awq(
    tensors: Mapping[str, StoredTensor], config: Mapping[str, Any], where: str
) -> Iterator[tuple[str, StoredTensor | None]]:
    """The matrices of an AWQ checkpoint, and None for the tensors that they consist of."""
    option(config, "bits", (4,), where)
    option(config, "version", ("gemm", "GEMM"), where, "gemm")
    group = field(config, "group_size", 128, where)
    for module, parts in grouped_parts(tensors, LEAVES).items():
        yield from ((stored.name, None) for stored in parts.values())
        yield f"{module}.weight", _Awq(module, parts, group).packed()


class _Awq(GroupedMatrix):
    """One matrix."""

    def __init__(self, module: str, parts: Parts, group: int) -> None:
        self.words, self.zero_words, self.scales = (part(parts, leaf, module, 2) for leaf in LEAVES)
        for words in (self.words, self.zero_words):
            check_kind(words, WORDS)
        width, rows = self.words.shape[0], self.words.shape[1] * 8
        super().__init__(self.words.path, module, "AWQ 4-bit", 4, (rows, width), group)
        because = f"{self.words.name} has {width} x {rows} codes, and group_size is {group}"
        check_shape(self.scales, (self.groups, rows), because)
        check_shape(self.zero_words, (self.groups, self.words.shape[1]), because)

    @staticmethod
    def _in_order(words: Tensor) -> Tensor:
        apart = unpacked(words, 4, 1).unflatten(1, (-1, 8))
        return apart[:, :, list(PLACES)].flatten(1)

    def codes(self) -> Tensor:
        return self._in_order(values_of(self.words)).t()

    def scale(self) -> Tensor:
        return values_of(self.scales).t()

    def zeros(self) -> Tensor | None:
        return unless_middle(self._in_order(values_of(self.zero_words)).t(), 4)
