"""Which weights of a model are quantized, and how."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from zoo.weights.blocks import Blocks

BLOCK_SIZES = (32, 64, 128)

OWN_BLOCK_SIZES = (16, *BLOCK_SIZES, 256)
"""Block sizes that checkpoints may bring along: those that the operations take."""

LEAST = 32
"""Matrices with fewer rows or columns stay as they are: they save nothing."""

SENSITIVE = frozenset({"router", "shared_gate"})
"""Modules whose results decide where tokens go, and stay as they are."""

TABLES = ("embedding.token.weight", "head.vocabulary.weight")
"""How the weights of embeddings and of their heads end, which may be tied and so are quantized alike."""


STACK = "encoder."
"""How the weights of an encoder's layers begin, whose inputs may have static scales."""

WIDE_INPUTS = frozenset({"down", "output"})
"""Modules whose inputs are rounded to 16 bits where scales are static: the last matrices of feed-forwards and of attention.
An activation function gives rare outliers of 50 times the other values, which cost more than all other inputs together."""


@dataclass(frozen=True)
class Quantization:
    """How a graph's matrices are quantized, and how its table of tokens and its scores of the vocabulary; some in blocks
    of their ``own``, by the names of their weights (None: stored in float16).

    Blocks with one scale per row are multiplied as integers with inputs that are rounded as they come (dynamic), or, with
    ``static_inputs``, with scales that calibration found.
    """

    matrices: Blocks
    tables: Blocks
    own: Mapping[str, Blocks | None] = field(default_factory=dict)
    static_inputs: bool = False

    def of(self, names: tuple[str, ...], shape: tuple[int, ...]) -> Blocks | None:
        """The blocks of weights of the model one below the other, or None where they stay as they are.

        Weights of different blocks are not to be put one below the other: see :meth:`agree`.
        """
        if names[0] in self.own:
            return self.own[names[0]]
        roles = {name.rpartition(".")[0].rpartition(".")[2] for name in names}
        if len(shape) != 2 or min(shape) < LEAST or roles & SENSITIVE:
            return None
        return fitted(self.tables if is_table(names) else self.matrices, shape[1])

    def input_bits(self, names: tuple[str, ...]) -> int | None:
        """The bits of a product's inputs where their scales are static, else None."""
        if (
            not self.static_inputs
            or names[0] in self.own
            or not names[0].startswith(STACK)
            or is_table(names)
        ):
            return None
        return 16 if {name.split(".")[-2] for name in names} & WIDE_INPUTS else 8

    def agree(self, names: Iterable[str]) -> bool:
        """Whether weights may lie one below the other."""
        return len({(name in self.own, self.own.get(name)) for name in names}) == 1

    def in_half(self, names: tuple[str, ...]) -> bool:
        """Whether weights are stored in float16."""
        return names[0] in self.own and self.own[names[0]] is None


def fitted(blocks: Blocks, width: int) -> Blocks:
    """Blocks of the size asked for, or of the largest smaller one that divides a width; else the last is filled up."""
    if blocks.size is None:
        return blocks
    fitting = [size for size in BLOCK_SIZES if size <= blocks.size and width % size == 0]
    return replace(blocks, size=max(fitting, default=blocks.size))


def is_table(names: tuple[str, ...]) -> bool:
    """Whether a weight is an embedding's or its head's."""
    return len(names) == 1 and names[0].endswith(TABLES)
