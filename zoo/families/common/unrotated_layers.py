"""Layers that do not rotate queries and keys."""

from __future__ import annotations

from collections.abc import Sequence

from specs.kinds.block import BlockParts
from specs.kinds.position import NoPosition
from zoo.families.common.config import Config
from zoo.families.common.fields import Positive
from zoo.families.common.layer_lists import all_but_every
from zoo.families.common.layers import LayerVariation
from zoo.families.common.template import Data, FieldContext, Template
from zoo.families.common.windowed_layers import Windows


class UnrotatedLayers(LayerVariation):
    """The layers that do not rotate queries and keys."""

    name = "unrotated"
    differs = {"attention": {"position": {"kind": "none"}}}

    def holds(self, block: BlockParts, index: int) -> bool:
        return isinstance(block.own_position, NoPosition)


class NoRopeLayers(UnrotatedLayers):
    """The layers that do not rotate, which ``no_rope_layers`` says by 0, in spite of its name: by default every fourth."""

    def __init__(self, name: str, differs: Template = None) -> None:
        self.name, self.differs = name, differs or UnrotatedLayers.differs

    @staticmethod
    def rotated(config: Config, depth: int) -> list[bool]:
        """Which layers rotate queries and keys."""
        flags = config.list("no_rope_layers")
        if not flags:
            return all_but_every(Positive("no_rope_layer_interval", default=4))(config, depth)
        config.int("no_rope_layer_interval")
        if len(flags) < depth or not all(type(flag) is int and flag in (0, 1) for flag in flags):
            config.refuse("no_rope_layers", f"must be 0 or 1 for each of the {depth} layers")
        return [flag == 1 for flag in flags[:depth]]

    def read(self, config: Config, depth: int) -> list[bool]:
        return [not rotated for rotated in self.rotated(config, depth)]

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        return {"no_rope_layers": [int(not unrotated) for unrotated in where]}


class GlobalLayers(UnrotatedLayers):
    """The layers without a window, which do not rotate queries and keys."""

    name = "global"

    def __init__(self, windows: Windows) -> None:
        self.windows = windows

    def read(self, config: Config, depth: int) -> list[bool]:
        return [not windowed for windowed in self.windows.read(config, depth)]

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        return {}
