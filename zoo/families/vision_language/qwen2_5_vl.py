"""Qwen2.5-VL (Bai et al., 2025): ``Qwen2_5_VLForConditionalGeneration``, Qwen2-VL with windows of patches in most layers of its
images, RMS norms and gated feed-forwards."""

from __future__ import annotations

from dataclasses import replace

from zoo.families.common import fields as f
from zoo.families.common.blocks import gated
from zoo.families.common.config import Config
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.hybrid import LayersOf
from zoo.families.common.images import SquareSide
from zoo.families.common.layer_lists import FULL, SLIDING, read_numbers
from zoo.families.common.layers import Layers
from zoo.families.common.qwen_vl import AxialRopeField, QwenVL, image_tensors, packed_embedding
from zoo.families.vision_language.qwen2_vl import TEXT, tensors_of

_NORM = {"kind": "rms_norm", "eps": 1e-6}
_WHOLE = "fullatt_block_indexes"
_PATCH = SquareSide("patch_size", default=14)


def _window(size: int, config: Config) -> int:
    """The side of a window in patches, a whole number of the squares that the connector joins; configs have it in pixels."""
    square, patch = config.int("spatial_merge_size", default=2), _PATCH.read(config)
    count = size // square // patch
    if count < 1:
        config.refuse("window_size", f"must be at least {square * patch}, the pixels of {square} patches")
    return int(count * square)


def _kinds(config: Config, depth: int) -> list[str]:
    whole = read_numbers(config, _WHOLE, [7, 15, 23, 31]) or []
    return [FULL if layer in whole else SLIDING for layer in range(depth)]


_WINDOWED = LayersOf(
    SLIDING,
    {
        "attention": {
            "patch_window": f.Computed(
                f.Int("window_size", default=112),
                _window,
                lambda side, context: side * context.model.embedding.patch_size,  # type: ignore[attr-defined]
            )
        }
    },
    _kinds,
    lambda kinds: {_WHOLE: [layer for layer, kind in enumerate(kinds) if kind == FULL]},
    lambda block: FULL if getattr(block.attention, "patch_window", None) is None else SLIDING,
    "windowed",
)
"""The layers whose patches see their window alone: those that are not in a list."""


VISION = Family(
    "qwen2_5_vl_vision",
    image_tensors("qwen2_5_vl_vision", {f"mlp.{name}_proj": f"feed_forward.{name}" for name in ("gate", "up", "down")}),
    {
        "architecture": "encoder",
        "d_model": f.Int("hidden_size", default=3584),
        "position": AxialRopeField(),
        "embedding": packed_embedding(),
        "encoder": Layers(
            f.Depth("depth", default=32),
            {
                "kind": "pre_norm",
                "norm": _NORM,
                "attention": {"kind": "multi_head", "heads": f.Int("num_heads", default=16)},
                "feed_forward": gated(3420),
            },
            (_WINDOWED,),
        ),
    },
    {"Qwen2_5_VLVisionModel": HeadClass("none")},
    ignored=("tokens_per_second",),  # of videos
)  # fmt: skip
"""The encoder of images; it has no norm after its layers."""

FAMILIES = (
    QwenVL(
        "qwen2_5_vl",
        tensors_of("qwen2_5_vl", VISION),
        classes={"Qwen2_5_VLForConditionalGeneration": HeadClass("language_modeling")},
        images=VISION,
        text=replace(TEXT, model_type="qwen2_5_vl_text"),
        norm=_NORM,
        ties_as_text=True,
    ),
)
