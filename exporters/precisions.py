"""The precisions of an export: how weights are stored, and the error that this may cause.

The exact form of a graph rounds no activations (:mod:`exporters.exact_graph`) and is compared with a model that has
the stored weights, so that one tolerance serves all precisions (:mod:`exporters.verify`). The distance from the
results of the original weights is reported as well; stored weights must be within ``weight_error``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import nn

from exporters.quantization.scheme import INT8_BLOCK, OWN_BLOCK_SIZES, Quantization, is_table
from exporters.targets import Target
from zoo.tensors import repeated_weights
from zoo.weights.blocks import Blocks


@dataclass(frozen=True)
class Precision:
    """How weights are stored: in a float dtype, or their matrices in ``bits``.

    ``weight_error`` is the largest root mean square error of a weight, relative to its own root mean square.
    """

    name: str
    summary: str
    dtype: torch.dtype
    weight_error: float
    bits: int | None = None

    def dtype_on(self, target: Target) -> torch.dtype:
        """The dtype of unquantized tensors: the target's in a quantized export, unless the precision states half."""
        return target.quantized_dtype if self.bits and self.dtype == torch.float32 else self.dtype

    @property
    def rounds(self) -> bool:
        """Whether weights or activations are rounded, so that the files differ from their exact form."""
        return self.weight_error > 0

    def least_bytes(self, values: int) -> int:
        """The smallest size of ``values`` stored weights, in bytes."""
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
    """How a graph's weights are quantized; None for a float precision.

    ``decodes`` says whether the model generates token by token, and ``graph_decodes`` whether the graph does; ``own``
    gives blocks to single weights by name. A single token is bound by reading weights, where blocks are best; many
    tokens are bound by multiplication, which is fastest with one scale per row.
    """
    if precision.bits is None:
        return None
    per_row, in_blocks = eight_bits(target, None), eight_bits(target, INT8_BLOCK)
    lookups = target.takes("GatherBlockQuantized", precision.dtype_on(target))
    in_half = precision.dtype_on(target) == torch.float16
    if precision.bits == 8:
        by_block = not target.multiplies_integers
        return Quantization(
            matrices=in_blocks if graph_decodes or by_block else per_row,
            tables=in_blocks if (lookups if by_block else decodes) else per_row,
            own=own,
            static_inputs=static_inputs,
            whole_blocks=target.whole_blocks,
            small_blocks=target.small_blocks,
        )
    tables = blocks if table_bits == 4 else in_blocks
    return Quantization(
        matrices=blocks,
        tables=tables if lookups or (decodes and not in_half) else per_row,
        own=own,
        whole_blocks=target.whole_blocks,
        small_blocks=target.small_blocks,
    )


def unquantized(model: nn.Module, target: Target) -> dict[str, None]:
    """The weights that a target takes only as floats, as blocks of weights by name: those that several layers read, if it
    takes no quantized matrix in several products."""
    if target.repeats_quantized:
        return {}
    return dict.fromkeys(name for name in repeated_weights(model) if not is_table((name,)))


def eight_bits(target: Target, size: int | None) -> Blocks:
    """Symmetric blocks of 8 bits that a target reads."""
    return Blocks(8, size, positive=target.positive_scales)


def holds(target: Target, name: str, blocks: Blocks, precision: Precision) -> bool:
    """Whether an export can keep a weight in its own blocks: with no more bits than the precision, or 8 in tables."""
    table, dtype = is_table((name,)), precision.dtype_on(target)
    if precision.bits is None or blocks.bits > (8 if table else precision.bits):
        return False
    if dtype == torch.float16 and not blocks.half:
        return False
    if blocks.size is None:
        return blocks.bits == 8 and blocks.symmetric
    if blocks.bits == 8 and dtype == torch.float16 and not target.takes("MatMulNBits", dtype):
        return False  # runtimes that fuse standard operations only take 4-bit blocks there
    looked_up = not table or blocks.bits == 8 or target.takes("GatherBlockQuantized", dtype)
    return looked_up and blocks.size in OWN_BLOCK_SIZES and (target.zero_points or not blocks.has_zeros)
