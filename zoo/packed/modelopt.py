"""Checkpoints of NVIDIA's Model Optimizer (``quant_method: modelopt``, or ``hf_quant_config.json`` beside the weights).

Each linear layer has ``weight`` and ``weight_scale`` in a form that follows from their dtypes: 8-bit floats, blocks of 4-bit or 8-bit
floats (NVFP4, MXFP4, MXFP8), or int4 and int8.  Stacked experts are a parameter with three axes, E K N: ``gate_up_proj`` with
``gate_up_proj_weight_scale``, in floats alone.  Source: https://github.com/NVIDIA/Model-Optimizer, ``modelopt.torch.export``.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from zoo.packed.block_floats import KINDS, block_floats
from zoo.packed.compressed import PlainInt8
from zoo.packed.grouped import GroupedMatrix
from zoo.packed.matrix import (
    PackedMatrix,
    Parts,
    check_kind,
    check_shape,
    check_single,
    field,
    group_width,
    grouped_parts,
    option,
    part,
    values_of,
)
from zoo.packed.scaled import scaled
from zoo.weights.safetensors import SafeTensor
from zoo.weights.source import WeightError
from zoo.weights.stored import FLOATS, StoredTensor

ALGORITHMS = (
    "FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO", "fp8_pb_wo",
    "NVFP4", "NVFP4_AWQ", "W4A16_NVFP4", "W4A8_NVFP4_FP8", "MXFP8", "mxfp4", "W4A8_MXFP4_FP8",
    "W4A16_AWQ", "W8A16", "W8A8_SQ_PER_CHANNEL", "MIXED_PRECISION",
)  # fmt: skip
"""The values of ``quant_algo`` whose matrices are read; they differ in the rounding of activations, too."""

LEAVES = ("weight_scale", "weight", "weight_scale_2", "pre_quant_scale")

_SCALES = ("weight_scale", "weight_scale_2")
"""The scales of stacked experts."""

TILE = 128
"""The rows and columns of a tile of 8-bit floats."""

_BLOCKS = {kinds: form for form, kinds in KINDS.items()}
"""The forms of floats in blocks, by the dtypes of codes and scales."""

_RUNTIME = re.compile(r"\.(\w+_proj_)?(input|output|[qkv]|prob_output)_scale$")
"""Scales of activations and KV caches, which exports round differently from the checkpoint's own kernels."""


def read_modelopt(
    tensors: Mapping[str, StoredTensor], config: Mapping[str, Any], where: str
) -> Iterator[tuple[str, StoredTensor | None]]:
    """The matrices of a checkpoint, and None for the tensors that they consist of."""
    option(field(config, "quantization", dict(config), where), "quant_algo", ALGORITHMS, where)
    for module, parts in grouped_parts(tensors, LEAVES).items():
        yield from ((stored.name, None) for stored in parts.values())
        yield f"{module}.weight", _scaled_inputs(_matrix(module, parts), parts.get("pre_quant_scale"))
    for name, stored in tensors.items():
        if len(stored.shape) == 3 and f"{name}_weight_scale" in tensors:
            parts = {leaf: tensors[f"{name}_{leaf}"] for leaf in _SCALES if f"{name}_{leaf}" in tensors}
            yield from ((member.name, None) for member in parts.values())
            yield name, _in_blocks(stored, parts) or _stacked_float8(stored, parts["weight_scale"])
    yield from ((name, None) for name in tensors if _RUNTIME.search(name))


def _in_blocks(weight: StoredTensor, parts: Parts) -> PackedMatrix | None:
    """A matrix, or stacked experts, of floats in blocks; None for other dtypes."""
    scale, rank = parts["weight_scale"], len(weight.shape)
    form = _BLOCKS.get((weight.kind, scale.kind))
    if form is None:
        return None
    if form != "NVFP4":
        return block_floats(weight.name, form, weight, scale, rank=rank)
    second = parts.get("weight_scale_2")
    if second is None:
        raise WeightError(
            f"{weight.path}: {scale.name}_2 is missing next to {weight.name}\n  Download the checkpoint again."
        )
    check_single(second, weight.name)

    def finished(scales: Tensor) -> Tensor:
        return scales * values_of(second).float().view(())

    return block_floats(weight.name, form, weight, scale, finished, rank)


def _matrix(module: str, parts: Parts) -> PackedMatrix:
    weight, scale = part(parts, "weight", module, 2), parts["weight_scale"]
    if made := _in_blocks(weight, parts):
        return made
    if weight.kind == "U8":
        return _Int4(module, weight, scale).packed()
    if weight.kind == "I8":
        return PlainInt8(module, parts, "modelopt int8").packed()
    return _float8(module, weight, scale)


def _float8(module: str, weight: StoredTensor, scale: StoredTensor) -> PackedMatrix:
    """8-bit floats with a scale per tensor, row or tile; scales of tiles may have axes of one between and after."""
    if len(scale.shape) == 4 and scale.shape[1::2] == (1, 1) and isinstance(scale, SafeTensor):
        scale = dataclasses.replace(scale, shape=scale.shape[::2])
    by_tile = len(scale.shape) == 2 and scale.shape != (weight.shape[0], 1)
    return scaled(module, weight, scale, [TILE, TILE] if by_tile else None)


def _stacked_float8(weight: StoredTensor, scale: StoredTensor) -> PackedMatrix:
    """The 8-bit floats of stacked experts, E K N, with one scale, one per expert, or one per tile.

    The scales of tiles are in the order of E K N, whatever axes they are stored with.
    """
    if weight.kind != "F8_E4M3":
        raise WeightError(
            f"{weight.path}: {weight.name} must be F8_E4M3, or floats in blocks, which {scale.name} scales\n"
            f"  value: {weight.kind}\n  Use the checkpoint in BF16."
        )
    check_kind(scale, FLOATS)
    experts, *sides = weight.shape
    tiles = (experts, *(-(-side // TILE) for side in sides))
    by_tile = len(scale.shape) == 5 and math.prod(scale.shape) == math.prod(tiles)
    if not by_tile and scale.shape not in ((), (1,)):
        check_shape(scale, (experts,), f"{weight.name} has {experts} experts")

    def values() -> Tensor:
        factors = values_of(scale).float().view(tiles if by_tile else (-1, 1, 1))
        if by_tile:
            high, wide = sides
            factors = factors.repeat_interleave(TILE, 1)[:, :high].repeat_interleave(TILE, 2)[..., :wide]
        return values_of(weight).float() * factors

    return PackedMatrix(weight.path, weight.name, "fp8", weight.shape, values)


def _scaled_inputs(matrix: PackedMatrix, factors: StoredTensor | None) -> PackedMatrix:
    """A matrix whose inputs are multiplied by factors first (AWQ: Lin et al., 2024), as one matrix of float32."""
    if factors is None:
        return matrix
    check_kind(factors, FLOATS)
    check_shape(factors, (matrix.shape[1],), f"{matrix.name} has {matrix.shape[1]} columns")
    return PackedMatrix(
        matrix.path,
        matrix.name,
        matrix.format,
        matrix.shape,
        lambda: matrix.values() * values_of(factors).float(),
    )


class _Int4(GroupedMatrix):
    """One matrix of signed 4-bit integers, bytes N/2 K with two rows each, the first in the lower bits."""

    def __init__(self, module: str, weight: StoredTensor, scale: StoredTensor) -> None:
        self.stored, self.scales = weight, scale
        rows, width = weight.shape[0] * 2, weight.shape[1]
        group = group_width(weight, scale, rows, width)
        super().__init__(weight.path, module, "modelopt int4", 4, (rows, width), group)

    def codes(self) -> Tensor:
        packed = values_of(self.stored)
        return torch.stack((packed & 15, packed >> 4), 1).flatten(0, 1) ^ 8

    def scale(self) -> Tensor:
        return values_of(self.scales)

    def zeros(self) -> None:
        return None
