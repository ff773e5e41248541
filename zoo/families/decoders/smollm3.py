"""SmolLM3 (Bakouch et al., 2025): ``SmolLM3Config``, ``SmolLM3Model`` and its heads: some layers do not rotate."""

from __future__ import annotations

from collections.abc import Sequence

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.layers import SLIDING, NoRopeLayers, Windows
from zoo.families.common.llama_like import LLAMA, WHOLE_HEADS, LlamaFields
from zoo.families.common.template import Data, FieldContext

_FIELDS = LlamaFields(vocab_size=128256, hidden_size=2048, layers=36, heads=16, kv_heads=4, context=32768)


class _NotRotated(NoRopeLayers):
    """The layers that do not rotate."""

    name = "no_rope"


class _SmolWindows(Windows):
    """The layers with a window, usually those that do not rotate."""

    def __init__(self) -> None:
        def default(config: Config, depth: int) -> list[bool]:
            using = config.bool("use_sliding_window", default=False) and config.has("sliding_window")
            return [using and unrotated for unrotated in _NotRotated().read(config, depth)]

        missing = ("layer_types", f"has {SLIDING} without a window", "set sliding_window")
        super().__init__("windowed", f.Int("sliding_window"), default, missing)

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        return {**super().write(where, context), "use_sliding_window": any(where)}


FAMILIES = (
    Family(
        "smollm3",
        LLAMA,
        _FIELDS.body(
            attention={"bias": f.Bias("attention_bias", default=False)},
            feed_forward=_FIELDS.feed_forward(bias=f.Bool("mlp_bias", default=False)),
            position=_FIELDS.rope(theta=2000000.0, whole=WHOLE_HEADS),
            varies=(_SmolWindows(), _NotRotated()),
        ),
        decoder_classes("SmolLM3", tied=True),
        ignored=("max_window_layers",),  # a leftover of Qwen2's, which the reference does not read
    ),
)
