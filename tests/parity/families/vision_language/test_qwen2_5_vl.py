"""Qwen2.5-VL against transformers: windows of patches in images of different sizes."""

from __future__ import annotations

from typing import Any

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FLAG
from tests.parity.families.vision_language.test_qwen2_vl import PUBLISHED as SECOND
from tests.parity.families.vision_language.test_qwen2_vl import TEXT, TOKENS
from tests.parity.families.vision_language_tests import ENCODER_WIDTH, PATCH, VisionLanguageTests

VISION: dict[str, Any] = dict(
    depth=3, hidden_size=24, intermediate_size=20, out_hidden_size=24, num_heads=3, patch_size=4, in_channels=3,
    spatial_merge_size=2, temporal_patch_size=2, window_size=16, fullatt_block_indexes=[1],
)  # fmt: skip

PUBLISHED = {
    **{name: value for name, value in SECOND.items() if name != "vision_config"},
    "architectures": ["Qwen2_5_VLForConditionalGeneration"], "hidden_size": 2048, "intermediate_size": 11008,
    "max_position_embeddings": 128000, "max_window_layers": 70, "model_type": "qwen2_5_vl", "num_attention_heads": 16,
    "num_hidden_layers": 36, "num_key_value_heads": 2,
    "vision_config": {
        "depth": 32, "hidden_act": "silu", "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "in_chans": 3,
        "out_hidden_size": 2048, "patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size": 14, "window_size": 112,
        "fullatt_block_indexes": [7, 15, 23, 31], "tokens_per_second": 2, "temporal_patch_size": 2,
    },
}  # fmt: skip
"""The fields of Qwen2.5-VL-3B-Instruct's config."""


class TestQwen25VL(VisionLanguageTests):
    model_class = hf.Qwen2_5_VLForConditionalGeneration
    defaults = TOKENS
    configs = {
        "windows of 2 x 2 vectors": dict(text_config=TEXT, vision_config=VISION, **TOKENS),
        "windows of 3 x 3 patches, everywhere": dict(
            text_config=TEXT,
            vision_config={**VISION, "spatial_merge_size": 1, "window_size": 13, "fullatt_block_indexes": []},
            tie_word_embeddings=True,
            **TOKENS,
        ),
        "windows nowhere": dict(
            text_config=TEXT, vision_config={**VISION, "depth": 2, "fullatt_block_indexes": [0, 1]}, **TOKENS
        ),
    }
    drawn = {}
    of_refusals = "windows nowhere"
    refusals = (
        ("vision_config.window_size", 7, "must be at least 8, the pixels of 2 patches"),
        ("vision_config.fullatt_block_indexes", ["last"], "must be a list of layers by number, from 0"),
        ("vision_config.out_hidden_size", 48, "must be 24: images among tokens are as wide"),
    )
    published = {"qwen2.5-vl-3b": PUBLISHED}

    @staticmethod
    def draw(data):
        square, depth = data.draw(st.integers(1, 3), "square"), data.draw(st.integers(1, 4), "depth")
        patch = data.draw(PATCH, "patch")
        vision = {
            **VISION, "depth": depth, "hidden_size": ENCODER_WIDTH, "intermediate_size": st.integers(1, 40),
            "patch_size": patch, "spatial_merge_size": square,
            "window_size": patch * square * data.draw(st.integers(1, 4), "window"),
            "fullatt_block_indexes": [layer for layer in range(depth) if data.draw(FLAG, "whole")],
        }  # fmt: skip
        return dict(text_config=TEXT, vision_config=vision)
