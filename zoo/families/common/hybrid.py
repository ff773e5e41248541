"""Stacks whose layers have different mixers: Mamba in most, attention in some."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from specs.kinds.block import BlockParts
from specs.kinds.mixture import Mixture
from zoo.families.common.config import Config
from zoo.families.common.layer_lists import FULL, LINEAR, SLIDING
from zoo.families.common.layers import LayerVariation
from zoo.families.common.template import Data, FieldContext, Template

MIXERS = (LINEAR, FULL)

CONVOLUTION, CHUNKED = "conv", "chunked_attention"
"""The words for a layer with a short convolution, and for one whose attention stays within chunks."""

_NAMES = {FULL: "attention", SLIDING: "local", CONVOLUTION: "convolution", CHUNKED: "chunked"}
"""The names of the variants of blocks, where they differ from the words."""


def kind_of(block: BlockParts) -> str:
    """The word for a layer by its branches."""
    if block.attention is not None:
        return FULL
    if block.mixer is not None:
        return LINEAR
    return "moe" if isinstance(block.feed_forward, Mixture) else "mlp"


class LayersOf(LayerVariation):
    """The layers of one kind: ``kinds`` reads the words for all layers, ``write_kinds`` writes them, by default as ``layer_types``,
    and ``word`` is the word for a block.  ``name`` is the name of their block, by default the word."""

    def __init__(
        self,
        kind: str,
        differs: Mapping[str, Template],
        kinds: Callable[[Config, int], Sequence[str]],
        write_kinds: Callable[[Sequence[str]], Data] = lambda kinds: {"layer_types": [*kinds]},
        word: Callable[[BlockParts], str] = kind_of,
        name: str = "",
    ) -> None:
        self.name = name or _NAMES.get(kind, kind)
        self.kind, self.differs, self.kinds, self.write_kinds, self.word = (
            kind,
            differs,
            kinds,
            write_kinds,
            word,
        )

    def read(self, config: Config, depth: int) -> list[bool]:
        return [kind == self.kind for kind in self.kinds(config, depth)]

    def holds(self, block: BlockParts, index: int) -> bool:
        return self.word(block) == self.kind

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        return self.write_kinds([self.word(block) for block in context.stack.layer_blocks()])
