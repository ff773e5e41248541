"""Qwen3-VL against transformers: interpolated positions, axes that take turns, and vectors of earlier layers in the decoder."""

from __future__ import annotations

from typing import Any

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FLAG
from tests.parity.families.vision_language.test_qwen2_vl import TOKENS
from tests.parity.families.vision_language_tests import ENCODER_WIDTH, PATCH, VisionLanguageTests

ROPE = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 1, 1], "mrope_interleaved": True}
TEXT: dict[str, Any] = dict(
    vocab_size=61, hidden_size=24, intermediate_size=33, num_hidden_layers=3, num_attention_heads=3, head_dim=8,
    num_key_value_heads=1, max_position_embeddings=128, rms_norm_eps=1e-3, rope_parameters=ROPE, bos_token_id=0,
    eos_token_id=1,
)  # fmt: skip
VISION: dict[str, Any] = dict(
    depth=4, hidden_size=24, intermediate_size=20, out_hidden_size=24, num_heads=3, patch_size=4, in_channels=3,
    spatial_merge_size=2, temporal_patch_size=2, num_position_embeddings=49, deepstack_visual_indexes=[0, 2],
)  # fmt: skip

PUBLISHED = {
    "architectures": ["Qwen3VLForConditionalGeneration"], "image_token_id": 151655, "model_type": "qwen3_vl",
    "text_config": {
        "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 151643, "dtype": "bfloat16",
        "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 2560, "initializer_range": 0.02,
        "intermediate_size": 9728, "max_position_embeddings": 262144, "model_type": "qwen3_vl_text",
        "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8, "rms_norm_eps": 1e-06,
        "rope_scaling": {"mrope_interleaved": True, "mrope_section": [24, 20, 20], "rope_type": "default"},
        "rope_theta": 5000000, "tie_word_embeddings": True, "use_cache": True, "vocab_size": 151936,
    },
    "tie_word_embeddings": True, "transformers_version": "4.57.0.dev0", "video_token_id": 151656,
    "vision_config": {
        "deepstack_visual_indexes": [5, 11, 17], "depth": 24, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 1024,
        "in_channels": 3, "initializer_range": 0.02, "intermediate_size": 4096, "model_type": "qwen3_vl",
        "num_heads": 16, "num_position_embeddings": 2304, "out_hidden_size": 2560, "patch_size": 16,
        "spatial_merge_size": 2, "temporal_patch_size": 2,
    },
    "vision_end_token_id": 151653, "vision_start_token_id": 151652,
}  # fmt: skip
"""The fields of Qwen3-VL-4B-Instruct's config."""


class TestQwen3VL(VisionLanguageTests):
    model_class = hf.Qwen3VLForConditionalGeneration
    defaults = TOKENS
    configs = {
        "qwen3-vl": dict(text_config=TEXT, vision_config=VISION, **TOKENS),
        "other sizes": dict(
            text_config={
                **TEXT, "head_dim": 12, "attention_bias": True, "rope_parameters": {**ROPE, "mrope_section": [1, 2, 3]},
            },
            vision_config={
                **VISION, "spatial_merge_size": 1, "num_position_embeddings": 4, "deepstack_visual_indexes": [1, 2, 3],
                "hidden_act": "silu",
            },
            tie_word_embeddings=True,
            **TOKENS,
        ),
        "no deep layers": dict(
            text_config=TEXT, vision_config={**VISION, "depth": 2, "deepstack_visual_indexes": []}, **TOKENS
        ),
    }  # fmt: skip
    drawn = {}
    refusals = (
        ("vision_config.num_position_embeddings", 8, "must be a square number"),
        ("vision_config.deepstack_visual_indexes", [2, 0], "must be layers by number, in order, from 0 to 3"),
        ("vision_config.deepstack_visual_indexes", [4], "must be layers by number, in order, from 0 to 3"),
    )
    published = {"qwen3-vl-4b": PUBLISHED}

    @staticmethod
    def draw(data):
        depth = data.draw(st.integers(1, 4), "depth")
        layers = [layer for layer in range(depth) if data.draw(FLAG, "deep")]
        return dict(
            text_config=TEXT,
            vision_config={**draw_vision(), "depth": depth, "deepstack_visual_indexes": layers[:3]},
        )


def draw_vision() -> dict[str, Any]:
    """The fields of any encoder of images."""
    return {
        **VISION, "hidden_size": ENCODER_WIDTH, "intermediate_size": st.integers(1, 40), "patch_size": PATCH,
        "spatial_merge_size": st.integers(1, 3), "num_position_embeddings": st.integers(1, 12).map(lambda side: side**2),
    }  # fmt: skip
