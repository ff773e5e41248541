"""Qwen2-VL against transformers: images of different sizes, padded rows, cached steps."""

from __future__ import annotations

from typing import Any

import pytest
import transformers as hf
from hypothesis import strategies as st

from specs.language.load import load as load_spec
from tests.parity.families.draws import FEW_LAYERS, FLAG
from tests.parity.families.vision_language_tests import ENCODER_WIDTH, PATCH, VisionLanguageTests
from zoo.configs.exporting import write_config

ROPE = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 1, 1]}
TEXT: dict[str, Any] = dict(
    vocab_size=61, hidden_size=24, intermediate_size=33, num_hidden_layers=2, num_attention_heads=3,
    num_key_value_heads=1, max_position_embeddings=128, rms_norm_eps=1e-3, rope_parameters=ROPE, bos_token_id=0,
    eos_token_id=1,
)  # fmt: skip
VISION: dict[str, Any] = dict(
    depth=2, embed_dim=24, hidden_size=24, num_heads=3, mlp_ratio=2, patch_size=4, in_channels=3,
    spatial_merge_size=2, temporal_patch_size=2,
)  # fmt: skip
TOKENS = dict(image_token_id=50, video_token_id=51, vision_start_token_id=52, vision_end_token_id=53)
CONFIGS = {
    "qwen2-vl": dict(text_config=TEXT, vision_config=VISION, **TOKENS),
    "other sizes": dict(
        text_config={**TEXT, "num_key_value_heads": 3, "rope_parameters": {**ROPE, "mrope_section": [1, 1, 2]}},
        vision_config={
            **VISION, "in_channels": 1, "spatial_merge_size": 1, "temporal_patch_size": 1, "patch_size": 3,
            "hidden_act": "gelu", "rope_parameters": {"rope_type": "axial", "rope_theta": 100.0},
        },
        tie_word_embeddings=True, **TOKENS,
    ),
    "yarn": dict(
        text_config={
            **TEXT,
            "rope_parameters": {
                "rope_type": "yarn", "rope_theta": 1e4, "factor": 2.0, "original_max_position_embeddings": 64,
                "mrope_section": [2, 1, 1],
            },
        },
        vision_config=VISION, **TOKENS,
    ),
}  # fmt: skip

PUBLISHED = {
    "architectures": ["Qwen2VLForConditionalGeneration"], "attention_dropout": 0.0, "bos_token_id": 151643,
    "eos_token_id": 151645, "vision_start_token_id": 151652, "vision_end_token_id": 151653,
    "vision_token_id": 151654, "image_token_id": 151655, "video_token_id": 151656, "hidden_act": "silu",
    "hidden_size": 1536, "initializer_range": 0.02, "intermediate_size": 8960, "max_position_embeddings": 32768,
    "max_window_layers": 28, "model_type": "qwen2_vl", "num_attention_heads": 12, "num_hidden_layers": 28,
    "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768,
    "tie_word_embeddings": True, "torch_dtype": "bfloat16", "transformers_version": "4.41.2", "use_cache": True,
    "use_sliding_window": False,
    "vision_config": {
        "depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "num_heads": 16, "in_chans": 3, "hidden_size": 1536,
        "patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size": 14, "temporal_patch_size": 2,
    },
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
    "vocab_size": 151936,
}  # fmt: skip
"""The fields of Qwen2-VL-2B-Instruct's config."""


class TestQwen2VL(VisionLanguageTests):
    model_class = hf.Qwen2VLForConditionalGeneration
    defaults = TOKENS
    configs = CONFIGS
    drawn = {}
    refusals = (
        ("text_config.model_type", "qwen2", "is not a supported family here"),
        ("text_config.rope_parameters.mrope_section", [4], "must be the numbers of pairs for frame, row and column"),
        ({"text_config.rope_parameters.mrope_section": [2, 2, 1]}, "position.sections.pairs", "must have the sum 4"),
        ("vision_config.hidden_size", 48, "must be 24: images among tokens are as wide"),
        ("vision_config.rope_parameters", {"rope_type": "linear"}, 'rope_type: must be "axial"'),
        ("vision_config.num_registers", 4, "unsupported fields"),
    )  # fmt: skip
    published = {"qwen2-vl-2b": PUBLISHED}

    @staticmethod
    def draw(data):
        heads, half = (
            data.draw(st.integers(1, 3), "heads"),
            data.draw(st.integers(2, 6), "half of a head's width"),
        )
        first = data.draw(st.integers(0, half), "pairs of frames")
        second = data.draw(st.integers(0, half - first), "pairs of rows")
        width, sections = 2 * half * heads, [first, second, half - first - second]
        return dict(
            text_config={
                **TEXT, "hidden_size": width, "num_attention_heads": heads, "num_key_value_heads": st.sampled_from([1, heads]),
                "num_hidden_layers": FEW_LAYERS, "rope_parameters": {**ROPE, "mrope_section": sections},
            },
            vision_config={
                **VISION, "hidden_size": width, "depth": FEW_LAYERS, "embed_dim": ENCODER_WIDTH, "mlp_ratio": st.integers(1, 4),
                "patch_size": PATCH, "temporal_patch_size": st.integers(1, 2), "spatial_merge_size": st.integers(1, 3),
                "in_channels": st.sampled_from([1, 3]),
            },
            tie_word_embeddings=FLAG,
        )  # fmt: skip


@pytest.mark.parametrize("preset", ["qwen2-vl-2b", "qwen2-vl-7b", "qwen2-vl-72b"])
def test_presets_have_a_config_with_the_width_of_the_decoder(preset):
    data = write_config(load_spec(preset), "qwen2_vl")
    assert data["hidden_size"] == data["vision_config"]["hidden_size"]
