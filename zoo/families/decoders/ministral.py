"""Ministral (Mistral AI, 2024): ``MinistralConfig``, ``MinistralModel`` and its heads: Mistral whose layers may differ in their window."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import LLAMA, LlamaFields
from zoo.families.common.windowed_layers import Windows

_FIELDS = LlamaFields(intermediate_size=14336, kv_heads=8, context=131072)
_WINDOW = f.Int("sliding_window", default=4096, null=True)


def _default_windows(config: Config, depth: int) -> list[bool]:
    """The window in every layer, where there is one."""
    return [_WINDOW.read(config) is not None] * depth


FAMILIES = (
    Family(
        "ministral",
        LLAMA,
        _FIELDS.body(attention={"bias": False}, varies=(Windows("local", _WINDOW, _default_windows),)),
        decoder_classes("Ministral"),
    ),
)
