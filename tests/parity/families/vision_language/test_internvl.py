"""InternVL against transformers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import InternVLConfig, InternVLForConditionalGeneration

from specs.language.load import load as load_spec
from tests.parity.families import vision_language_tests as vision_language
from tests.thinned import one_in
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config, ConfigError

VISION: dict[str, Any] = dict(
    hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=17, image_size=16, patch_size=4,
    layer_norm_eps=1e-3, attention_bias=True, layer_scale_init_value=0.7,
)  # fmt: skip
QWEN2: dict[str, Any] = dict(
    model_type="qwen2", vocab_size=61, hidden_size=24, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, intermediate_size=33, max_position_embeddings=64,
)  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "internvl 3": dict(
        vision_config=VISION, text_config=QWEN2, image_token_id=60, image_seq_length=4, tie_word_embeddings=False
    ),
    "the 6 billion of images, one layer less": dict(
        vision_config={**VISION, "norm_type": "rms_norm", "use_qk_norm": True, "attention_bias": False,
                       "num_hidden_layers": 3, "use_mean_pooling": False},
        text_config={**QWEN2, "model_type": "llama", "num_key_value_heads": 4},
        image_token_id=7,
        vision_feature_layer=-2,
        projector_hidden_act="gelu_pytorch_tanh",
    ),
    "a last norm, and patches as they are": dict(
        vision_config={**VISION, "use_mean_pooling": False, "image_size": 9, "patch_size": [3, 3], "num_channels": 1},
        text_config={**QWEN2, "model_type": "qwen3", "head_dim": 8},
        image_token_id=0,
        downsample_ratio=1.0,
    ),
}  # fmt: skip
UNREAD = ("model.vision_tower.layernorm.",)


def check(data: dict[str, Any], directory: Any, **more: Any) -> Any:
    return vision_language.check(
        InternVLForConditionalGeneration, InternVLConfig(**data), directory, without=UNREAD, **more
    )


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check(CONFIGS[name], tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vision_feature_layer": [-1, -2]}, "vision_feature_layer: must be a whole number"),
        ({"vision_feature_layer": 1}, "vision_feature_layer: must be from -2 to -1: layers are counted from the last"),
        ({"vision_feature_select_strategy": "full"}, "vision_feature_select_strategy: must be \"default\": the class token is in"),
        ({"downsample_ratio": 1 / 3}, "downsample_ratio: must be one of 1.0, 0.5, 0.25, 0.125, 0.0625: the reference rounds others"),
        ({"downsample_ratio": 0.125}, "connector.shuffle: must divide the number of patches in a row, which is 4"),
        ({"vision_config": {**VISION, "use_absolute_position_embeddings": False}}, "use_absolute_position_embeddings: must be true"),
        ({"vision_config": {**VISION, "projection_dropout": 0.1}}, "projection_dropout: must equal hidden_dropout_prob, which is 0.0"),
        (
            {"vision_config": {**VISION, "norm_type": "rms_norm", "use_mean_pooling": False}},
            "vision_config.use_mean_pooling: must be true with norm_type rms_norm",
        ),
        ({"vision_config": {**VISION, "norm_type": "batch_norm"}}, "vision_config.norm_type: is not supported"),
        ({"vision_config": {**VISION, "image_size": [16, 12]}}, "vision_config.image_size: must be a whole number"),
        ({"vision_config": {**VISION, "depth": 4}}, "unsupported fields:\n  vision_config.depth: 4"),
        ({"text_config": {**QWEN2, "model_type": "gpt2"}}, "text_config.model_type: is not a supported family here"),
        ({"image_token_id": 61}, "connector.token: must be below vocab_size, which is 61"),
    ],
)  # fmt: skip
def test_unsupported_values_and_fields_are_refused(change, message):
    data = InternVLConfig(**CONFIGS["internvl 3"]).to_dict()
    data = {**data, "architectures": ["InternVLForConditionalGeneration"], **change}
    with pytest.raises(ConfigError, match=message):
        spec_of_config(Config(data, "config.json"), name="tiny", strict=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["connector={kind: linear, token: 1}"], "connector of other layers than two as wide as the decoder"),
        (["connector.hidden=64"], "connector of other layers than two as wide as the decoder"),
        (["connector.joined_norm=null"], "connector without a layer_norm of joined vectors"),
        (["image.embedding.image_size=420", "connector.shuffle=3"], "or of squares with other sides"),
        (["connector.norm={kind: layer_norm}"], "connector"),
        (["image.block.layer_scale=null"], "image"),
    ],
)
def test_what_has_no_field_is_named(changes, message):
    with pytest.raises(NoFamilyError, match=message):
        write_config(load_spec("internvl3-1b", changes), "internvl")


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    heads, shuffle = (
        data.draw(st.sampled_from([2, 4]), "heads"),
        data.draw(st.sampled_from([1, 2, 4]), "shuffle"),
    )
    side, patch = shuffle * data.draw(st.integers(1, 2), "squares"), data.draw(st.integers(1, 5), "patch")
    norm = data.draw(st.sampled_from(["layer_norm", "rms_norm"]), "norm")
    config = dict(
        vision_config={
            **VISION,
            "num_hidden_layers": data.draw(st.integers(2, 3), "layers of images"),
            "image_size": side * patch + data.draw(st.integers(0, patch - 1), "rest"),
            "patch_size": patch,
            "norm_type": norm,
            "attention_bias": data.draw(st.booleans(), "bias"),
            "use_qk_norm": data.draw(st.booleans(), "norm of queries and keys"),
            "use_mean_pooling": norm == "rms_norm" or data.draw(st.booleans(), "mean"),
        },
        text_config={
            **QWEN2,
            "model_type": data.draw(st.sampled_from(["llama", "qwen2", "qwen3"]), "words"),
            "hidden_size": heads * data.draw(st.sampled_from([4, 6, 10]), "head_dim"),
            "num_attention_heads": heads,
            "num_hidden_layers": data.draw(st.integers(1, 3), "layers"),
        },
        image_token_id=data.draw(st.integers(0, 60), "token"),
        downsample_ratio=1 / shuffle,
        vision_feature_layer=data.draw(st.sampled_from([-1, -2]), "layer"),
        tie_word_embeddings=data.draw(st.booleans(), "tied"),
    )
    check(config, tmp_path_factory.mktemp("any"), onnx=False, fuzzed=True)
