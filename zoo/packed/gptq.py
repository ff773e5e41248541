"""GPTQ (Frantar et al., 2022) as AutoGPTQ and GPTQModel store it.

``qweight`` K/8 N and ``qzeros`` G N/8 are int32 words of codes; ``scales`` G N, and ``g_idx`` K, the group of each column.
The first version of the format stores zero points less 1.
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

LEAVES = ("qweight", "qzeros", "scales", "g_idx")


def read_gptq(
    tensors: Mapping[str, StoredTensor], config: Mapping[str, Any], where: str
) -> Iterator[tuple[str, StoredTensor | None]]:
    """The matrices of a GPTQ checkpoint, and None for the tensors that they consist of."""
    bits = option(config, "bits", (4, 8), where)
    form = option(config, "checkpoint_format", ("gptq", "gptq_v2"), where, "gptq")
    group = field(config, "group_size", -1, where)
    for module, parts in grouped_parts(tensors, LEAVES).items():
        yield from ((stored.name, None) for stored in parts.values())
        yield f"{module}.weight", _Gptq(module, parts, bits, group, form == "gptq").packed()


class _Gptq(GroupedMatrix):
    """One matrix."""

    def __init__(self, module: str, parts: Parts, bits: int, group: int, less: bool) -> None:
        self.words, self.zero_words = (part(parts, leaf, module, 2) for leaf in ("qweight", "qzeros"))
        self.scales, self.index, self.less = part(parts, "scales", module), parts.get("g_idx"), less
        per_word = 32 // bits
        for words in (self.words, self.zero_words):
            check_kind(words, WORDS)
        width, rows = self.words.shape[0] * per_word, self.words.shape[1]
        super().__init__(self.words.path, module, f"GPTQ {bits}-bit", bits, (rows, width), group)
        because = f"{self.words.name} has {width} x {rows} codes, and group_size is {group}"
        check_shape(self.scales, (self.groups, rows), because)
        check_shape(self.zero_words, (self.groups, -(-rows // per_word)), because)
        if self.index is not None:
            check_shape(self.index, (width,), because)

    def codes(self) -> Tensor:
        return unpacked(values_of(self.words), self.bits, 0).t()

    def scale(self) -> Tensor:
        return values_of(self.scales).t()

    def zeros(self) -> Tensor | None:
        """Zero points with 1 added, which may need one bit more than codes have."""
        stored = unpacked(values_of(self.zero_words), self.bits, 1)[:, : self.rows].int().t()
        return unless_middle(stored + self.less, self.bits)

    def order(self) -> Tensor:
        return super().order() if self.index is None else self.listed(self.index)
