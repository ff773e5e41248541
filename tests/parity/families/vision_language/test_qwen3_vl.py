"""Qwen3-VL against transformers: interpolated positions, axes that take turns, and vectors of earlier layers in the decoder."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

from specs.forms.canonical import canonical
from specs.language.load import load as load_spec
from tests.parity.families import vision_language_tests as vision_language
from tests.parity.families.vision_language.test_qwen2_vl import TOKENS
from tests.thinned import one_in
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config, ConfigError

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
CONFIGS: dict[str, dict[str, Any]] = {
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

PUBLISHED: dict[str, Any] = {
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


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    vision_language.check(Qwen3VLForConditionalGeneration, Qwen3VLConfig(**CONFIGS[name]), tmp_path)


def test_the_config_of_qwen3_vl_4b():
    spec = spec_of_config(Config(PUBLISHED, "config.json"), name="qwen3-vl-4b")
    assert canonical(spec) == canonical(load_spec("qwen3-vl-4b"))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"num_position_embeddings": 8}, "num_position_embeddings: must be a square number"),
        ({"deepstack_visual_indexes": [2, 0]}, "deepstack_visual_indexes: must be layers by number, in order, from 0 to 3"),
        ({"deepstack_visual_indexes": [4]}, "deepstack_visual_indexes: must be layers by number, in order, from 0 to 3"),
    ],
)  # fmt: skip
def test_unsupported_values_are_refused(change, rule):
    data = Qwen3VLConfig(**CONFIGS["qwen3-vl"]).to_dict()
    data["vision_config"] |= change
    with pytest.raises(ConfigError, match=rule):
        spec_of_config(Config(data, "config.json"), name="tiny")


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    depth = data.draw(st.integers(1, 4), "depth")
    layers = [layer for layer in range(depth) if data.draw(st.booleans(), "deep")]
    vision = {
        **VISION,
        "depth": depth,
        "hidden_size": 4 * 3 * data.draw(st.integers(1, 3), "quarter of a head's width"),
        "intermediate_size": data.draw(st.integers(1, 40), "hidden"),
        "patch_size": data.draw(st.integers(2, 4), "patch"),
        "spatial_merge_size": data.draw(st.integers(1, 3), "square"),
        "num_position_embeddings": data.draw(st.integers(1, 12), "side") ** 2,
        "deepstack_visual_indexes": layers[:3],
    }
    config = Qwen3VLConfig(text_config=TEXT, vision_config=vision, **TOKENS)
    seed = data.draw(st.integers(0, 99), "seed")
    directory = tmp_path_factory.mktemp("drawn")
    vision_language.check(
        Qwen3VLForConditionalGeneration, config, directory, seed=seed, onnx=seed % 5 == 0, fuzzed=True
    )
