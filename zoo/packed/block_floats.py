"""Matrices of 4-bit or 8-bit floats in blocks of columns, each with a scale: NVFP4, MXFP4 and MXFP8.

``weight`` holds 8-bit floats N K, or bytes N K/2 with two 4-bit floats each, the first in the lower bits.  ``weight_scale`` N G holds
8-bit floats (NVFP4, with one more scale per tensor), or exponents plus 127 (OCP Microscaling, 2023).  Values are computed in float32.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from zoo.packed.matrix import PackedMatrix, check_rank, check_shape, values_of
from zoo.weights.stored import StoredTensor

MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""The magnitudes of the eight codes of a 4-bit float; the highest bit is the sign."""

BLOCKS = {"NVFP4": 16, "MXFP4": 32, "MXFP8": 32}
"""The number of columns that share a scale."""


def float4(packed: Tensor) -> Tensor:
    """4-bit floats from bytes, the first in the lower bits: ... K/2 -> ... K in float32."""
    table = torch.tensor([*MAGNITUDES, *(-magnitude for magnitude in MAGNITUDES)])
    codes = torch.stack((packed & 15, packed >> 4), -1).flatten(-2)
    return table[codes.int()]


def block_floats(
    module: str,
    form: str,
    weight: StoredTensor,
    scale: StoredTensor,
    finished: Callable[[Tensor], Tensor] = lambda values: values,
) -> PackedMatrix:
    """A matrix of floats in blocks; ``finished`` applies what else its values are multiplied by."""
    check_rank(weight, 2)
    rows, stored = weight.shape
    size, columns = BLOCKS[form], 2 if weight.kind == "U8" else 1  # in one stored number
    width, whole = stored * columns, size // columns
    check_shape(weight, (rows, -(-stored // whole) * whole), f"{form} has blocks of {size} columns")
    check_shape(scale, (rows, width // size), f"{weight.name} has {rows} rows in blocks of {size} columns")

    def values() -> Tensor:
        numbers = float4(values_of(weight)) if weight.kind == "U8" else values_of(weight).float()
        blocks = numbers.unflatten(1, (-1, size))  # N G S
        if scale.kind == "U8":
            made = torch.ldexp(blocks, values_of(scale).int()[..., None] - 127)
        else:
            made = blocks * finished(values_of(scale).float())[..., None]
        return made.flatten(1)

    return PackedMatrix(weight.path, f"{module}.weight", form, (rows, width), values)
