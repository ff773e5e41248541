"""PaliGemma and PaliGemma 2 against transformers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PaliGemmaConfig, PaliGemmaForConditionalGeneration

from specs.forms.canonical import canonical
from specs.language.load import load as load_spec
from tests.parity.families import vision_language_tests as vision_language
from tests.parity.families.vision_language.test_gemma3_images import SIGLIP, UNREAD
from tests.thinned import one_in
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config, ConfigError

TEXT: dict[str, Any] = dict(
    model_type="gemma", vocab_size=61, hidden_size=24, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=1, head_dim=8, intermediate_size=33, max_position_embeddings=64, rms_norm_eps=1e-3,
)  # fmt: skip
SECOND: dict[str, Any] = dict(
    TEXT, model_type="gemma2", num_key_value_heads=2, num_hidden_layers=3, sliding_window=4, query_pre_attn_scalar=11,
    layer_types=["sliding_attention", "full_attention", "sliding_attention"],
)  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "paligemma 2": dict(vision_config=SIGLIP, text_config=SECOND, image_token_index=7, projection_dim=24),
    "paligemma": dict(
        vision_config={**SIGLIP, "image_size": 9, "num_channels": 1, "vision_use_head": True},
        text_config=TEXT,
        image_token_index=60,
        projection_dim=24,
        tie_word_embeddings=False,
    ),
}

PUBLISHED: dict[str, Any] = {
    "_name_or_path": "final-weights-pali/",
    "architectures": ["PaliGemmaForConditionalGeneration"],
    "bos_token_id": 2,
    "eos_token_id": 1,
    "hidden_size": 2048,
    "ignore_index": -100,
    "image_token_index": 257152,
    "model_type": "paligemma",
    "pad_token_id": 0,
    "projection_dim": 2048,
    "text_config": {
        "hidden_size": 2048,
        "intermediate_size": 16384,
        "model_type": "gemma",
        "num_attention_heads": 8,
        "num_hidden_layers": 18,
        "num_image_tokens": 256,
        "num_key_value_heads": 1,
        "torch_dtype": "float32",
        "vocab_size": 257216,
    },
    "torch_dtype": "float32",
    "transformers_version": "4.41.0.dev0",
    "vision_config": {
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "model_type": "siglip_vision_model",
        "num_attention_heads": 16,
        "num_hidden_layers": 27,
        "num_image_tokens": 256,
        "patch_size": 14,
        "projection_dim": 2048,
        "projector_hidden_act": "gelu_fast",
        "vision_use_head": False,
    },
}
"""The fields of paligemma-3b-pt-224's config."""


def check(config: PaliGemmaConfig, directory: Any, **more: Any) -> None:
    vision_language.check(
        PaliGemmaForConditionalGeneration, config, directory, without=UNREAD, marked=True, **more
    )


@one_in(2)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check(PaliGemmaConfig(**CONFIGS[name]), tmp_path)


def test_a_published_config_is_that_of_the_preset():
    found = spec_of_config(Config(PUBLISHED, "config.json"), name="paligemma-3b-224")
    assert canonical(found) == canonical(load_spec("paligemma-3b-224"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"projection_dim": 20}, "projection_dim: must be 24: images among tokens are as wide as these"),
        ({"text_config": {**TEXT, "model_type": "gemma3_text"}}, "text_config.model_type: is not a supported family here"),
        ({"vision_config": {**SIGLIP, "depth": 4}}, "unsupported fields:\n  vision_config.depth: 4"),
        ({"image_token_index": 61}, "connector.token: must be below vocab_size, which is 61"),
    ],
)  # fmt: skip
def test_unsupported_values_and_fields_are_refused(change, message):
    data = PaliGemmaConfig(**CONFIGS["paligemma"]).to_dict()
    data = {**data, "architectures": ["PaliGemmaForConditionalGeneration"], **change}
    with pytest.raises(ConfigError, match=message):
        spec_of_config(Config(data, "config.json"), name="tiny", strict=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("connector={kind: mlp, token: 1}", "connector.kind mlp"),
        ("connector.pool=2", "connector"),
        ("connector.bias=false", "connector"),
        ("decoder.bidirectional=image", "decoder"),
        ("image.final_norm=false", "image"),
    ],
)
def test_what_has_no_field_is_named(change, message):
    with pytest.raises(NoFamilyError, match=message):
        write_config(load_spec("paligemma-3b-224", [change]), "paligemma")


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    side, patch = data.draw(st.integers(1, 3), "side"), data.draw(st.integers(1, 4), "patch")
    text, heads = (
        data.draw(st.sampled_from([TEXT, SECOND]), "text"),
        data.draw(st.sampled_from([2, 4]), "heads"),
    )
    more: dict[str, Any] = {}
    if text is SECOND:
        more["sliding_window"] = data.draw(st.integers(1, 12), "window")
    config = PaliGemmaConfig(
        vision_config={
            **SIGLIP,
            "num_hidden_layers": data.draw(st.integers(1, 3), "layers of images"),
            "image_size": side * patch + data.draw(st.integers(0, patch - 1), "rest"),
            "patch_size": patch,
        },
        text_config={**text, "num_attention_heads": heads, **more},
        image_token_index=data.draw(st.integers(0, 60), "token"),
        projection_dim=24,
        tie_word_embeddings=data.draw(st.booleans(), "tied"),
    )
    check(config, tmp_path_factory.mktemp("any"), onnx=False, fuzzed=True)
