"""SmolLM3 (Bakouch et al., 2025): ``SmolLM3Config``, ``SmolLM3Model`` and its heads: some layers do not rotate."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.layer_lists import SLIDING
from zoo.families.common.llama_like import LLAMA, WHOLE_HEADS, LlamaFields
from zoo.families.common.unrotated_layers import NoRopeLayers
from zoo.families.common.windowed_layers import Windows

_FIELDS = LlamaFields(vocab_size=128256, hidden_size=2048, layers=36, heads=16, kv_heads=4, context=32768)


_NOT_ROTATED = NoRopeLayers("no_rope")


def _default_windows(config: Config, depth: int) -> list[bool]:
    """Windows in the layers that do not rotate, if they are in use."""
    using = config.bool("use_sliding_window", default=False) and config.has("sliding_window")
    return [using and unrotated for unrotated in _NOT_ROTATED.read(config, depth)]


_WINDOWS = Windows(
    "windowed",
    f.Int("sliding_window"),
    _default_windows,
    missing=("layer_types", f"has {SLIDING} without a window", "set sliding_window"),
    written=lambda where: {"use_sliding_window": any(where)},
)

FAMILIES = (
    Family(
        "smollm3",
        LLAMA,
        _FIELDS.body(
            attention={"bias": f.Bias("attention_bias", default=False)},
            feed_forward=_FIELDS.feed_forward(bias=f.Bool("mlp_bias", default=False)),
            position=_FIELDS.rope(theta=2000000.0, whole=WHOLE_HEADS),
            varies=(_WINDOWS, _NOT_ROTATED),
        ),
        decoder_classes("SmolLM3", tied=True),
        ignored=("max_window_layers",),  # a leftover of Qwen2's, which the reference does not read
    ),
)
