"""Layers with a sliding window."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from specs.kinds.block import BlockParts
from zoo.families.common.config import Config
from zoo.families.common.fields import Depth, Int
from zoo.families.common.layer_lists import FULL, SLIDING, WhereFunction, read_layer_types
from zoo.families.common.layers import LayerVariation
from zoo.families.common.template import Data, FieldContext, Template


class Windows(LayerVariation):
    """Layers with a window, as listed in ``layer_types``; ``default`` gives them for a config without that list.

    ``written`` gives further fields that state them for other readers.
    """

    def __init__(
        self,
        name: str,
        window: Template,
        default: WhereFunction,
        missing: tuple[str, ...] = ("sliding_window", f"must be a number: there are layers of {SLIDING}"),
        written: Callable[[Sequence[bool]], Data] = lambda where: {},
        **attention: Template,
    ) -> None:
        self.name, self.window, self.default, self.missing = name, window, default, missing
        self.written = written
        self.differs = {"attention": {"window": window, **attention}}

    def read(self, config: Config, depth: int) -> list[bool]:
        windowed = read_layer_types(config, self.default(config, depth))
        if any(windowed) and self.window.read(config) is None:
            config.refuse(*self.missing)
        return windowed

    def holds(self, block: BlockParts, index: int) -> bool:
        return block.sliding_window is not None

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        return {"layer_types": [SLIDING if windowed else FULL for windowed in where], **self.written(where)}


class SingleWindow(Int):
    """The window of all layers, of a reference with one mask for all; null for none."""

    def __init__(self, depth: Depth, *, default: int | None) -> None:
        super().__init__("sliding_window", default=default, null=True)
        self.depth = depth

    def read(self, config: Config) -> int | None:
        window: int | None = super().read(config)
        every = [window is not None] * self.depth.read(config)
        if read_layer_types(config, every) != every:
            kind = FULL if window is None else SLIDING
            config.refuse(
                "layer_types", f"must be {kind} for every layer: the reference has one mask for all"
            )
        return window
