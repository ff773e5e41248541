"""The precisions of an export: storage formats of weights, and the error that each may cause.

The exact form of a graph rounds no activations (:mod:`exporters.verification.exact.graph`) and is compared with a model with the
stored weights, so that one tolerance serves all precisions (:mod:`exporters.verification.compare`). The distance from the
results of the original weights is reported as well; stored weights must be within ``weight_error``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch

from exporters.graph.quantization.scheme import (
    INT8_BLOCK,
    OWN_BLOCK_SIZES,
    WIDE_INT8_BLOCK,
    Quantization,
    is_table,
)
from exporters.target.targets import Target
from zoo.weights.blocks import Blocks


@dataclass(frozen=True)
class Precision:
    """A storage format of weights: a float dtype, or quantized matrices of ``bits``.

    ``weight_error`` is the largest root mean square error of a weight, relative to its own root mean square.
    """

    name: str
    summary: str
    dtype: torch.dtype
    weight_error: float
    bits: int | None = None

    def dtype_on(self, target: Target) -> torch.dtype:
        """The dtype of unquantized tensors: in a quantized export the target's, unless the precision is half."""
        return target.quantized_dtype if self.bits and self.dtype == torch.float32 else self.dtype

    @property
    def rounds(self) -> bool:
        """Whether the files round weights or activations, unlike their exact form."""
        return self.weight_error > 0

    def least_bytes(self, values: int) -> int:
        """A lower bound for the bytes of ``values`` weights."""
        return values * (self.bits or 8 * self.dtype.itemsize) // 8


PRECISIONS = {
    precision.name: precision
    for precision in (
        Precision("fp32", "float32", torch.float32, 0.0),
        Precision("fp16", "float16, with float32 where its range is too small", torch.float16, 1e-3),
        Precision("bf16", "bfloat16, with float32 where fp16 has it", torch.bfloat16, 4e-3),
        Precision("int8", "matrices in 8 bits, inputs rounded at run time", torch.float32, 5e-2, 8),
        Precision("int4", "matrices in 4 bits by block", torch.float32, 2.5e-1, 4),
        Precision("q4f16", "the same, float16 elsewhere", torch.float16, 2.5e-1, 4),
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
    """The quantization of a graph's weights; None for a float precision.

    ``decodes``: whether the model generates token by token; ``graph_decodes``: whether this graph does; ``own``: the blocks
    of single weights by name. One token is bound by reading weights, for which blocks are best; many tokens are bound by
    multiplication, which is fastest with one scale per row. The encoder of a model that generates has no static scales: the last
    matrices of its feed-forwards and of attention, whose inputs have the rarest outliers, are in blocks where a target multiplies
    by them.
    """
    if precision.bits is None:
        return None
    per_row, in_blocks = eight_bits(target, None), eight_bits(target, INT8_BLOCK)
    lookups = target.takes("GatherBlockQuantized", precision.dtype_on(target))
    in_half = precision.dtype_on(target) == torch.float16
    if precision.bits == 8:
        by_block = not target.multiplies_integers
        matrices = in_blocks if graph_decodes or by_block else per_row
        finer = matrices.size or (decodes and target.takes("MatMulNBits", precision.dtype_on(target)))
        return Quantization(
            matrices=matrices,
            tables=in_blocks if (lookups if by_block else decodes) else per_row,
            own=own,
            static_inputs=static_inputs,
            wide_inputs=eight_bits(target, WIDE_INT8_BLOCK) if finer else None,
            undivided=target.undivided,
        )
    tables = blocks if table_bits == 4 else in_blocks
    return Quantization(
        matrices=blocks,
        tables=tables if lookups or (decodes and not in_half) else per_row,
        own=own,
        undivided=target.undivided,
    )


def eight_bits(target: Target, size: int | None) -> Blocks:
    """The symmetric 8-bit blocks of a target."""
    return Blocks(8, size, positive=target.positive_scales)


def holds(target: Target, name: str, blocks: Blocks, precision: Precision) -> bool:
    """Whether an export can keep a weight in the checkpoint's blocks: at most the precision's bits, or 8 in tables."""
    table, dtype = is_table((name,)), precision.dtype_on(target)
    if precision.bits is None or blocks.bits > (8 if table else precision.bits):
        return False
    if dtype == torch.float16 and not blocks.half:
        return False
    if blocks.floats:
        return target.takes("QMoE", dtype)
    if blocks.size is None:
        return blocks.bits == 8 and blocks.symmetric
    if blocks.bits == 8 and dtype == torch.float16 and not target.takes("MatMulNBits", dtype):
        return False  # runtimes that fuse standard operations take only 4-bit blocks in products
    looked_up = not table or blocks.bits == 8 or target.takes("GatherBlockQuantized", dtype)
    return looked_up and blocks.size in OWN_BLOCK_SIZES and (target.zero_points or not blocks.has_zeros)
