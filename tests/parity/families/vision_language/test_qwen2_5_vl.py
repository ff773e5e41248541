"""Qwen2.5-VL against transformers: windows of patches in images of different sizes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

from specs.forms.canonical import canonical
from specs.language.load import load as load_spec
from tests.parity.families import vision_language_tests as vision_language
from tests.parity.families.vision_language.test_qwen2_vl import PUBLISHED as SECOND
from tests.parity.families.vision_language.test_qwen2_vl import TEXT, TOKENS
from tests.thinned import one_in
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config, ConfigError

VISION: dict[str, Any] = dict(
    depth=3, hidden_size=24, intermediate_size=20, out_hidden_size=24, num_heads=3, patch_size=4, in_channels=3,
    spatial_merge_size=2, temporal_patch_size=2, window_size=16, fullatt_block_indexes=[1],
)  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
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

PUBLISHED: dict[str, Any] = {
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


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    vision_language.check(Qwen2_5_VLForConditionalGeneration, Qwen2_5_VLConfig(**CONFIGS[name]), tmp_path)


def test_the_config_of_qwen2_5_vl_3b():
    spec = spec_of_config(Config(PUBLISHED, "config.json"), name="qwen2.5-vl-3b")
    assert canonical(spec) == canonical(load_spec("qwen2.5-vl-3b"))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"window_size": 7}, "vision_config.window_size: must be at least 8, the pixels of 2 patches"),
        ({"fullatt_block_indexes": ["last"]}, "fullatt_block_indexes: must be a list of layers by number, from 0"),
        ({"out_hidden_size": 48}, "vision_config.out_hidden_size: must be 24: images among tokens are as wide"),
    ],
)  # fmt: skip
def test_unsupported_values_are_refused(change, rule):
    data = Qwen2_5_VLConfig(**CONFIGS["windows nowhere"]).to_dict()
    data["vision_config"] |= change
    with pytest.raises(ConfigError, match=rule):
        spec_of_config(Config(data, "config.json"), name="tiny")


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    square, depth = data.draw(st.integers(1, 3), "square"), data.draw(st.integers(1, 4), "depth")
    patch = data.draw(st.integers(2, 4), "patch")
    vision = {
        **VISION,
        "depth": depth,
        "hidden_size": 4 * 3 * data.draw(st.integers(1, 3), "quarter of a head's width"),
        "intermediate_size": data.draw(st.integers(1, 40), "hidden"),
        "patch_size": patch,
        "spatial_merge_size": square,
        "window_size": patch * square * data.draw(st.integers(1, 4), "window"),
        "fullatt_block_indexes": [layer for layer in range(depth) if data.draw(st.booleans(), "whole")],
    }
    config = Qwen2_5_VLConfig(text_config=TEXT, vision_config=vision, **TOKENS)
    seed = data.draw(st.integers(0, 99), "seed")
    directory = tmp_path_factory.mktemp("drawn")
    vision_language.check(
        Qwen2_5_VLForConditionalGeneration, config, directory, seed=seed, onnx=seed % 5 == 0, fuzzed=True
    )
