"""Matrices of 4-bit or 8-bit floats in blocks of columns, each with a scale: NVFP4, MXFP4 and MXFP8.

``weight`` holds 8-bit floats N K, or bytes N K/2 with two 4-bit floats each, the first in the lower bits.  ``weight_scale`` N G holds
8-bit floats (NVFP4, with one more scale per tensor), or exponents plus 127 (OCP Microscaling, 2023).  Values are computed in float32.
The matrices of stacked experts have one more axis, the first; their blocks may lie along the rows instead: K/2 N and G N.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from zoo.packed.matrix import PackedMatrix, check_kind, check_rank, check_shape, shown, values_of
from zoo.weights.float4 import apart, decoded
from zoo.weights.stored import StoredTensor

BLOCKS = {"NVFP4": (16, 32), "MXFP4": (32,), "MXFP8": (32,)}
"""The numbers of columns that may share a scale, the usual one first."""


KINDS = {"NVFP4": ("U8", "F8_E4M3"), "MXFP4": ("U8", "U8"), "MXFP8": ("F8_E4M3", "U8")}
"""The dtypes of codes and scales."""


def block_floats(
    name: str,
    form: str,
    weight: StoredTensor,
    scale: StoredTensor,
    finished: Callable[[Tensor], Tensor] = lambda values: values,
    rank: int = 2,
) -> PackedMatrix:
    """A matrix of floats in blocks, or stacked experts where ``rank`` is 3; ``finished`` multiplies the scales by another factor."""
    check_rank(weight, rank)
    for tensor, kind in zip((weight, scale), KINDS[form], strict=True):
        check_kind(tensor, (kind,))
    by_rows = rank == 3 and scale.shape[-1:] == weight.shape[-1:]  # scales of columns are fewer than columns

    def turned(shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[:-2], shape[-1], shape[-2]) if by_rows else shape

    *rows, stored = turned(weight.shape)
    columns = 2 if weight.kind == "U8" else 1  # in one stored number
    width, sizes = stored * columns, BLOCKS[form]
    count = turned(scale.shape)[-1] if len(scale.shape) == rank else 0
    size = next((size for size in sizes if size * count == width), sizes[0])
    whole = size // columns
    check_shape(weight, turned((*rows, -(-stored // whole) * whole)), f"{form} has blocks of {size} columns")
    because = f"{weight.name} has {shown(tuple(rows))} rows in blocks of {size} columns"
    check_shape(scale, turned((*rows, width // size)), because)

    def values() -> Tensor:
        numbers, factors = (tensor.mT if by_rows else tensor for tensor in map(values_of, (weight, scale)))
        blocks = (decoded(apart(numbers)) if weight.kind == "U8" else numbers.float()).unflatten(
            -1, (-1, size)
        )
        if scale.kind == "U8":
            made = torch.ldexp(blocks, factors.int()[..., None] - 127)
        else:
            made = blocks * finished(factors.float())[..., None]
        return made.flatten(-2).mT.contiguous() if by_rows else made.flatten(-2)

    return PackedMatrix(weight.path, name, form, turned((*rows, width)), values)
