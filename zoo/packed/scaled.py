"""Matrices in 8-bit floats with scales: per tensor, per row, or per tile, as published by DeepSeek-V3 (128 x 128).

No operation of the targets reads them: their values are computed exactly in float32, and are ordinary weights from there on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from zoo.packed.matrix import (
    PackedMatrix,
    check_kind,
    check_rank,
    check_shape,
    field,
    grouped_parts,
    option,
    values_of,
)
from zoo.weights.source import WeightError
from zoo.weights.stored import FLOATS, StoredTensor

LEAVES = ("weight_scale_inv", "weight_scale", "weight")
_RUNTIME = ("input_scale", "activation_scale", "activation_scale_inv")


def read_scaled(
    tensors: Mapping[str, StoredTensor], config: Mapping[str, Any], where: str
) -> Iterator[tuple[str, StoredTensor | None]]:
    """The matrices of a checkpoint in 8-bit floats, and None for the tensors that they consist of."""
    option(config, "fmt", ("e4m3", "e5m2", None), where)
    tile = field(config, "weight_block_size", list[Any](), where)
    if tile and (len(tile) != 2 or not all(type(size) is int and size > 0 for size in tile)):
        raise WeightError(
            f"{where}: quantization_config.weight_block_size: must be two positive integers\n  value: {tile}\n"
            "  Use the file that was published with the tensors."
        )
    for leaf in LEAVES[:2]:
        for module, parts in grouped_parts(tensors, (leaf, "weight")).items():
            if "weight" in parts:
                yield from ((stored.name, None) for stored in parts.values())
                yield f"{module}.weight", scaled(module, parts["weight"], parts[leaf], tile)
    yield from ((name, None) for name in tensors if name.rpartition(".")[2] in _RUNTIME)


def scaled(
    module: str, weight: StoredTensor, scale: StoredTensor, tile: list[int] | None = None
) -> PackedMatrix:
    """A matrix of 8-bit floats times its scales: one, one per row, or one per tile."""
    if weight.kind not in ("F8_E4M3", "F8_E5M2"):
        raise WeightError(
            f"{weight.path}: {weight.name} must be F8_E4M3 or F8_E5M2, which {scale.name} scales\n  value: {weight.kind}\n"
            "  Use the checkpoint in BF16."
        )
    check_rank(weight, 2)
    check_kind(scale, FLOATS)
    rows, columns = weight.shape
    high, wide = tile or (1, columns)
    if scale.shape not in ((), (1,), (1, 1), (rows,)):
        because = f"{weight.name} is {rows} x {columns}, in tiles of {high} x {wide}"
        check_shape(scale, (-(-rows // high), -(-columns // wide)), because)

    def values() -> Tensor:
        factors = values_of(scale).float()
        if factors.dim() < 2:
            factors = factors.view(-1, 1)
        elif factors.numel() > 1:
            factors = factors.repeat_interleave(high, 0)[:rows].repeat_interleave(wide, 1)[:, :columns]
        return values_of(weight).float() * factors

    return PackedMatrix(weight.path, f"{module}.weight", "fp8", (rows, columns), values)
