"""MXFP4 (OCP Microscaling, 2023), in which GPT-OSS publishes its experts.

``*_blocks`` E N B 16 are bytes with two 4-bit floats each, the first in the lower bits; ``*_scales`` E N B the exponents of
their 32 values plus 127.  Values are exact in float32; the matrices of experts are stored d_in x d_out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from zoo.packed.block_floats import float4
from zoo.packed.matrix import PackedMatrix, check_kind, check_rank, check_shape, values_of
from zoo.weights.source import WeightError
from zoo.weights.stored import StoredTensor


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
        experts, rows, count, packed = blocks.shape
        check_shape(scales, (experts, rows, count), f"{name} has {count} blocks in each of {rows} rows")
        check_shape(blocks, (experts, rows, count, 16), "blocks have 32 values of 4 bits")
        yield name, None
        yield scales.name, None
        shape = (experts, count * packed * 2, rows)
        yield full, PackedMatrix(blocks.path, full, "MXFP4", shape, lambda b=blocks, s=scales: _values(b, s))  # type: ignore[misc]


def _values(blocks: StoredTensor, scales: StoredTensor) -> Tensor:
    exponents = values_of(scales).int() - 127
    values = torch.ldexp(float4(values_of(blocks)), exponents[..., None])  # E N B 32
    return values.flatten(2).mT.contiguous()
