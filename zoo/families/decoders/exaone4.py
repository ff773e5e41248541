"""EXAONE 4 (LG AI Research, 2025): ``Exaone4Config``, ``Exaone4Model`` and its heads.

OLMo 2 with norms of each head; where layers have windows, the others do not rotate.
"""

from __future__ import annotations

from collections.abc import Sequence

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.layer_lists import all_but_every_fourth
from zoo.families.common.llama_like import LlamaFields
from zoo.families.common.template import Data, FieldContext
from zoo.families.common.unrotated_layers import GlobalLayers
from zoo.families.common.windowed_layers import Windows
from zoo.families.decoders.olmo2 import OLMO2_TENSORS

_FIELDS = LlamaFields(vocab_size=102400, intermediate_size=16384, kv_heads=32, eps=1e-5)
_WINDOWS = Windows("local", f.Int("sliding_window", default=4096, null=True), all_but_every_fourth)


class WindowlessLayers(GlobalLayers):
    """The layers without a window of a model that has one."""

    def read(self, config: Config, depth: int) -> list[bool]:
        where = super().read(config, depth)
        return [False] * depth if self.windows.window.read(config) is None else where

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        blocks = enumerate(context.stack.layer_blocks())
        windowed = any(self.windows.holds(block, i) for i, block in blocks)
        return {} if windowed or any(where) else {"sliding_window": None}


FAMILIES = (
    Family(
        "exaone4",
        OLMO2_TENSORS,
        _FIELDS.body(
            kind="reordered_norm",
            attention={"bias": False, "qk_norm": _FIELDS.qk_norm},
            varies=(_WINDOWS, WindowlessLayers(_WINDOWS)),
        ),
        decoder_classes("Exaone4"),
    ),
)
