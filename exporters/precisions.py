"""The precisions of an export: one table says how weights are stored, and how far weights may then be from the original ones.

The exact form of a graph rounds no activations (:mod:`exporters.exact_graph`), and the model that it is compared with has
the weights that the file holds, so that one tolerance serves all precisions (:mod:`exporters.verify`).  How far rounding
takes the results from those of the original weights is reported beside it; stored weights are held to ``weight_error``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch

from exporters.quantization.scheme import OWN_BLOCK_SIZES, Quantization, is_table
from exporters.targets import Target
from zoo.weights.blocks import Blocks

IN_HALF = frozenset({"cuda", "tensorrt"})
"""Targets on which the inputs of quantized products are float16."""

INT8_BLOCK = 128
"""Values per scale where 8 bits come in blocks: a scale of a block serves it nearly as well as one of fewer would."""


@dataclass(frozen=True)
class Precision:
    """How weights are stored: in a float dtype, or their matrices in ``bits``.

    ``weight_error`` is the largest root mean square error of a weight, as a part of its own root mean square.
    """

    name: str
    summary: str
    dtype: torch.dtype
    weight_error: float
    bits: int | None = None

    def dtype_on(self, target: Target) -> torch.dtype:
        """The dtype of what is not quantized."""
        return torch.float16 if self.bits and target.name in IN_HALF else self.dtype

    @property
    def rounds(self) -> bool:
        """Whether weights or activations are rounded, so that a file computes something else than its exact form."""
        return self.weight_error > 0

    def least_bytes(self, values: int) -> int:
        """The least that so many values of weights come to in a file."""
        return values * (self.bits or 8 * self.dtype.itemsize) // 8


PRECISIONS = {
    precision.name: precision
    for precision in (
        Precision("fp32", "float32", torch.float32, 0.0),
        Precision("fp16", "float16, with float32 for what half has no room for", torch.float16, 1e-3),
        Precision("bf16", "bfloat16, with float32 where fp16 has it", torch.bfloat16, 4e-3),
        Precision("int8", "matrices in 8 bits, inputs rounded as they come", torch.float32, 5e-2, 8),
        Precision("int4", "matrices in 4 bits by block", torch.float32, 2.5e-1, 4),
    )
}


def quantization_of(
    precision: Precision,
    target: Target,
    *,
    decodes: bool,
    graph_decodes: bool,
    blocks: Blocks,
    table_bits: int,
    own: Mapping[str, Blocks | None] = MappingProxyType({}),
    static_inputs: bool = False,
) -> Quantization | None:
    """How a graph's weights are quantized; ``decodes`` says whether its model generates token by token, and
    ``graph_decodes`` whether the graph does; weights in blocks of their ``own`` are given by name.

    One token at a time is bound by reading weights, which blocks serve best; many tokens at a time by multiplying, which is
    fastest with one scale per row.
    """
    if precision.bits is None:
        return None
    per_row, in_blocks = Blocks(8, None), Blocks(8, INT8_BLOCK)
    lookups = target.takes("GatherBlockQuantized", precision.dtype_on(target))
    in_half = target.name in IN_HALF
    if precision.bits == 8:
        return Quantization(
            matrices=in_blocks if graph_decodes or in_half else per_row,
            tables=in_blocks if (lookups if in_half else decodes) else per_row,
            own=own,
            static_inputs=static_inputs,
        )
    tables = blocks if table_bits == 4 else in_blocks
    return Quantization(
        matrices=blocks, tables=tables if lookups or (decodes and not in_half) else per_row, own=own
    )


def holds(target: Target, name: str, blocks: Blocks, precision: Precision) -> bool:
    """Whether an export can store a weight in its own blocks: in no more bits than the precision has, or 8 in tables."""
    table, dtype = is_table((name,)), precision.dtype_on(target)
    if precision.bits is None or blocks.bits > (8 if table else precision.bits):
        return False
    if dtype == torch.float16 and not blocks.half:
        return False
    if blocks.size is None:
        return blocks.bits == 8 and blocks.symmetric
    if blocks.bits == 8 and dtype == torch.float16 and not target.takes("MatMulNBits", dtype):
        return False  # runtimes that make one operation of standard ones take blocks of 4 bits there
    looked_up = not table or blocks.bits == 8 or target.takes("GatherBlockQuantized", dtype)
    return looked_up and blocks.size in OWN_BLOCK_SIZES and (target.zero_points or not blocks.has_zeros)
