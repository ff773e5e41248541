"""LLaVA against transformers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LlavaConfig, LlavaForConditionalGeneration

from specs.language.load import load as load_spec
from tests.parity.families import vision_language_tests as vision_language
from tests.thinned import one_in
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config, ConfigError

CLIP: dict[str, Any] = dict(
    model_type="clip_vision_model", hidden_size=24, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17,
    image_size=14, patch_size=4, layer_norm_eps=1e-3, projection_dim=9,
)  # fmt: skip
SIGLIP: dict[str, Any] = dict(
    model_type="siglip_vision_model", hidden_size=20, num_hidden_layers=2, num_attention_heads=5, intermediate_size=40,
    image_size=16, patch_size=8, num_channels=1,
)  # fmt: skip
LLAMA: dict[str, Any] = dict(
    model_type="llama", vocab_size=61, hidden_size=24, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, intermediate_size=33, max_position_embeddings=64,
)  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "llava 1.5": dict(vision_config=CLIP, text_config=LLAMA, image_token_index=7),
    "whole images, last layer": dict(
        vision_config={**CLIP, "hidden_act": "gelu"},
        text_config={**LLAMA, "model_type": "mistral", "sliding_window": 6},
        image_token_index=0,
        vision_feature_layer=-1,
        vision_feature_select_strategy="full",
        projector_hidden_act="gelu_pytorch_tanh",
    ),
    "interleave": dict(
        vision_config=SIGLIP,
        text_config={**LLAMA, "model_type": "qwen2", "tie_word_embeddings": True},
        tie_word_embeddings=True,
        image_token_index=60,
        vision_feature_select_strategy="full",
        multimodal_projector_bias=False,
    ),
}
UNREAD = ("model.vision_tower.post_layernorm.", "model.vision_tower.head.")


def check(config: LlavaConfig, directory: Any, **more: Any) -> None:
    vision_language.check(LlavaForConditionalGeneration, config, directory, without=UNREAD, **more)


@one_in(4)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check(LlavaConfig(**CONFIGS[name]), tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vision_feature_layer": [-2, -5]}, "vision_feature_layer: must be a whole number"),
        ({"vision_feature_layer": 2}, "vision_feature_layer: must be from -3 to -1: layers are counted from the last"),
        ({"vision_config": SIGLIP}, "vision_feature_select_strategy: must be full, as the images have no class token"),
        ({"vision_config": {**CLIP, "model_type": "vit"}}, "vision_config.model_type: is not a supported family here"),
        ({"text_config": {**LLAMA, "model_type": "gpt2"}}, "text_config.model_type: is not a supported family here"),
        ({"text_config": {**LLAMA, "hidden_act": "sillu"}}, "text_config.hidden_act: is not supported"),
        ({"image_token_index": 61}, "connector.token: must be below vocab_size, which is 61"),
    ],
)  # fmt: skip
def test_unsupported_values_and_fields_are_refused(change, message):
    data = LlavaConfig(**CONFIGS["llava 1.5"]).to_dict()
    data = {**data, "architectures": ["LlavaForConditionalGeneration"], **change}
    with pytest.raises(ConfigError, match=message):
        spec_of_config(Config(data, "config.json"), name="tiny")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("connector.shuffle=2", "connector with pixel shuffle or a norm"),
        ("connector.hidden=64", "connector of other layers than two as wide as the decoder"),
        ("image.final_norm=true", "image.final_norm"),
    ],
)
def test_what_has_no_field_is_named(change, message):
    with pytest.raises(NoFamilyError, match=message):
        write_config(load_spec("llava-1.5-7b", [change]), "llava")


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    images = dict(data.draw(st.sampled_from([CLIP, SIGLIP]), "images"))
    words = data.draw(st.sampled_from(["llama", "mistral", "qwen2"]), "words")
    heads = data.draw(st.sampled_from([2, 4]), "heads")
    clip = images["model_type"].startswith("clip")
    config = LlavaConfig(
        vision_config={**images, "num_hidden_layers": data.draw(st.integers(2, 3), "layers of images")},
        text_config={
            **LLAMA,
            "model_type": words,
            "hidden_size": heads * data.draw(st.sampled_from([4, 6, 10]), "head_dim"),
            "num_attention_heads": heads,
            "num_hidden_layers": data.draw(st.integers(1, 3), "layers"),
        },
        image_token_index=data.draw(st.integers(0, 60), "token"),
        vision_feature_layer=data.draw(st.sampled_from([-1, -2]), "layer"),
        vision_feature_select_strategy=data.draw(
            st.sampled_from(["default", "full"] if clip else ["full"]), "kept"
        ),
        multimodal_projector_bias=data.draw(st.booleans(), "bias"),
    )
    check(config, tmp_path_factory.mktemp("any"), onnx=False, fuzzed=True)
