"""The choice of quantized weights and of their blocks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from exporters.target.targets import Undivided
from zoo.weights.blocks import Blocks

BLOCK_SIZES = (32, 64, 128)

INT8_BLOCK, WIDE_INT8_BLOCK = 128, 64
"""The block sizes of 8-bit weights: smaller ones hardly reduce their error, but processors round inputs in the same blocks, which
matters for :data:`WIDE_INPUTS`."""

LEAST_BLOCK = 16
"""The smallest block size, for widths that no larger size divides on targets that prefer whole blocks."""

OWN_BLOCK_SIZES = (LEAST_BLOCK, *BLOCK_SIZES, 256)
"""The block sizes of quantized checkpoints that the operations support."""

TILE = 64
"""The rows and columns of a tile of 4-bit floats in QMoE's kernels: experts have whole tiles (``kInterleaveKTile`` in ONNX Runtime's
``contrib_ops/cuda/moe/moe_quantization.cc``)."""

LEAST = 32
"""The least rows or columns of a quantized matrix: quantizing smaller ones saves nothing."""

SENSITIVE = frozenset({"router", "shared_gate"})
"""Routing modules, which are not quantized."""

TABLES = ("embedding.token.weight", "per_layer_embedding.table.weight", "head.vocabulary.weight")
"""The name endings of embedding tables and output heads, which may be tied and are quantized alike."""


STACK = "encoder."
"""The name prefix of weights in encoder layers, whose inputs may have static scales."""

WIDE_INPUTS = frozenset({"down", "output"})
"""Modules whose inputs are rounded more finely, under static scales to 16 bits: the last matrices of feed-forwards and of attention.

An activation function gives rare outliers of 50 times the other values, which cost more than all other inputs
together.
"""


@dataclass(frozen=True)
class Quantization:
    """The quantization of a graph's matrices, its token table and its vocabulary scores.

    ``own`` has the blocks of single weights by name (None: stored in float16). Blocks with one scale per row are multiplied
    as integers: inputs are rounded dynamically, or with calibrated scales if ``static_inputs``. ``wide_inputs`` are the blocks
    of :data:`WIDE_INPUTS` whose inputs have no calibrated scales (None: as the other matrices). ``undivided`` is the form of
    matrices whose width no block size divides.
    """

    matrices: Blocks
    tables: Blocks
    own: Mapping[str, Blocks | None] = field(default_factory=dict)
    static_inputs: bool = False
    wide_inputs: Blocks | None = None
    undivided: Undivided = "short block"

    def of(self, names: tuple[str, ...], shape: tuple[int, ...]) -> Blocks | None:
        """The blocks of stacked weights of the model, or None if they are not quantized.

        Weights of different blocks must not be stacked: see :meth:`agree`.
        """
        if names[0] in self.own:
            own = self.own[names[0]]
            return own if own is None or not own.floats or in_tiles(shape) else None
        if len(shape) not in (2, 3) or min(shape[-2:]) < LEAST or modules_of(names) & SENSITIVE:
            return None
        if len(shape) == 3:
            return self._of_experts(*shape[1:])
        blocks = self.tables if is_table(names) else self.matrices
        if self.wide_inputs is not None and modules_of(names) & WIDE_INPUTS and not self.input_bits(names):
            blocks = self.wide_inputs
        return fitted(blocks, shape[1], self.undivided)

    def _of_experts(self, *sizes: int) -> Blocks | None:
        """The blocks of the experts' matrices: symmetric, the same in all matrices of a mixture, and dividing both widths;
        None if no block size does.
        """
        common = math.gcd(*sizes)
        size = INT8_BLOCK if self.matrices.size is None else self.matrices.size
        blocks = fitted(replace(self.matrices, size=size, symmetric=True), common)
        return blocks if blocks is not None and blocks.divides(common) else None

    def input_bits(self, names: tuple[str, ...]) -> int | None:
        """The bits of a product's inputs under static scales; None if they have none."""
        if (
            not self.static_inputs
            or names[0] in self.own
            or not names[0].startswith(STACK)
            or is_table(names)
        ):
            return None
        return 16 if modules_of(names) & WIDE_INPUTS else 8

    def agree(self, names: Iterable[str]) -> bool:
        """Whether weights may be stacked."""
        return len({(name in self.own, self.own.get(name)) for name in names}) == 1

    def in_half(self, names: tuple[str, ...]) -> bool:
        """Whether weights are stored in float16."""
        return names[0] in self.own and self.own[names[0]] is None


def modules_of(names: Iterable[str]) -> set[str]:
    """The modules that weights belong to, by the last parts of their names."""
    return {name.rpartition(".")[0].rpartition(".")[2] for name in names}


def in_tiles(shape: tuple[int, ...]) -> bool:
    """Whether the sides of matrices are multiples of :data:`TILE`."""
    return all(side % TILE == 0 for side in shape[-2:])


def int8_block(names: Iterable[str]) -> int:
    """The block size of 8-bit weights."""
    return WIDE_INT8_BLOCK if modules_of(names) & WIDE_INPUTS else INT8_BLOCK


def fitted(blocks: Blocks, width: int, undivided: Undivided = "short block") -> Blocks | None:
    """Blocks of the requested size, or of the largest smaller size that divides the width; otherwise of the ``undivided`` form,
    which is None for floats.

    With floats, 8-bit rows have at least two blocks: the compiler of TensorRT for RTX ends with an internal error for an attention
    whose queries, keys and values have one block per row.
    """
    if blocks.size is None:
        return blocks
    sizes = BLOCK_SIZES if undivided == "short block" else (LEAST_BLOCK, *BLOCK_SIZES)
    longest = min(blocks.size, width // 2) if undivided == "floats" and blocks.bits == 8 else blocks.size
    fitting = [size for size in sizes if size <= longest and width % size == 0]
    if not fitting and undivided == "floats":
        return None
    if not fitting and undivided == "rows":
        return Blocks(8, None)
    return replace(blocks, size=max(fitting, default=blocks.size))


def is_table(names: tuple[str, ...]) -> bool:
    """Whether a weight belongs to an embedding or its head."""
    return len(names) == 1 and names[0].endswith(TABLES)
