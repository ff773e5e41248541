"""Gemma 3 with images against transformers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Gemma3Config, Gemma3ForConditionalGeneration

from specs.language.load import load as load_spec
from tests.parity.families import vision_language_tests as vision_language
from tests.thinned import one_in
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config, ConfigError

SIGLIP: dict[str, Any] = dict(
    model_type="siglip_vision_model", hidden_size=20, num_hidden_layers=2, num_attention_heads=5, intermediate_size=40,
    image_size=16, patch_size=4, layer_norm_eps=1e-3, vision_use_head=False,
)  # fmt: skip
TEXT: dict[str, Any] = dict(
    model_type="gemma3_text", vocab_size=61, hidden_size=24, num_hidden_layers=3, num_attention_heads=4,
    num_key_value_heads=2, head_dim=8, intermediate_size=33, max_position_embeddings=64, sliding_window=5,
    layer_types=["sliding_attention", "full_attention", "sliding_attention"], query_pre_attn_scalar=11, rms_norm_eps=1e-3,
)  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "gemma 3": dict(vision_config=SIGLIP, text_config=TEXT, image_token_index=7, mm_tokens_per_image=4),
    "patches as they are, untied": dict(
        vision_config={**SIGLIP, "image_size": 9, "num_channels": 1, "vision_use_head": True},
        text_config={**TEXT, "num_key_value_heads": 4, "sliding_window": 3},
        image_token_index=60,
        mm_tokens_per_image=4,
        tie_word_embeddings=False,
    ),
}
UNREAD = ("model.vision_tower.head.",)

PUBLISHED: dict[str, Any] = {
    "architectures": ["Gemma3ForConditionalGeneration"],
    "boi_token_index": 255999,
    "eoi_token_index": 256000,
    "eos_token_id": [1, 106],
    "image_token_index": 262144,
    "initializer_range": 0.02,
    "mm_tokens_per_image": 256,
    "model_type": "gemma3",
    "text_config": {
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "model_type": "gemma3_text",
        "num_hidden_layers": 34,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
        "sliding_window": 1024,
    },
    "torch_dtype": "bfloat16",
    "transformers_version": "4.50.0.dev0",
    "vision_config": {
        "hidden_size": 1152,
        "image_size": 896,
        "intermediate_size": 4304,
        "model_type": "siglip_vision_model",
        "num_attention_heads": 16,
        "num_hidden_layers": 27,
        "patch_size": 14,
        "vision_use_head": False,
    },
}
"""The fields of gemma-3-4b-it's config."""


def check(config: Gemma3Config, directory: Any, **more: Any) -> None:
    vision_language.check(
        Gemma3ForConditionalGeneration, config, directory, without=UNREAD, marked=True, **more
    )


@one_in(2)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check(Gemma3Config(**CONFIGS[name]), tmp_path)


def test_a_published_config_is_that_of_the_preset():
    found = spec_of_config(Config(PUBLISHED, "config.json"), name="gemma3-4b")
    preset = load_spec("gemma3-4b")
    same = ("source", "summary", "year", "expect")
    assert found.model_copy(update={name: getattr(preset, name) for name in same}) == preset


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mm_tokens_per_image": 5}, "mm_tokens_per_image: must be the square of a divisor of the patches in a row, which are 4"),
        ({"mm_tokens_per_image": 9}, "mm_tokens_per_image: must be the square of a divisor of the patches in a row, which are 4"),
        ({"vision_config": {**SIGLIP, "model_type": "vit"}}, "vision_config.model_type: is not a supported family here"),
        ({"text_config": {**TEXT, "model_type": "gemma2"}}, "text_config.model_type: is not a supported family here"),
        ({"text_config": {**TEXT, "use_bidirectional_attention": True}}, "text_config.use_bidirectional_attention: must be false"),
        ({"text_config": {**TEXT, "final_logit_softcapping": 3.0}}, "text_config.final_logit_softcapping: must be null"),
        ({"image_token_index": 61}, "connector.token: must be below vocab_size, which is 61"),
    ],
)  # fmt: skip
def test_unsupported_values_and_fields_are_refused(change, message):
    data = Gemma3Config(**CONFIGS["gemma 3"]).to_dict()
    data = {**data, "architectures": ["Gemma3ForConditionalGeneration"], **change}
    with pytest.raises(ConfigError, match=message):
        spec_of_config(Config(data, "config.json"), name="tiny")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("connector={kind: mlp, token: 1}", "connector.kind mlp"),
        ("connector.norm=null", "connector without an rms_norm of the same eps as the norms of the images"),
        ("connector.shuffle=2", "connector"),
        ("decoder.bidirectional=null", "decoder"),
        ("image.final_norm=false", "image"),
        ("head.softcap=3.0", "head.softcap"),
    ],
)
def test_what_has_no_field_is_named(change, message):
    with pytest.raises(NoFamilyError, match=message):
        write_config(load_spec("gemma3-4b", [change]), "gemma3")


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    squares, pool = data.draw(st.integers(1, 3), "squares"), data.draw(st.integers(1, 3), "pool")
    patch = data.draw(st.integers(1, 4), "patch")
    heads = data.draw(st.sampled_from([2, 4]), "heads")
    depth = data.draw(st.integers(1, 3), "layers")
    kinds = ["sliding_attention", "full_attention"]
    config = Gemma3Config(
        vision_config={
            **SIGLIP,
            "num_hidden_layers": data.draw(st.integers(1, 3), "layers of images"),
            "image_size": squares * pool * patch + data.draw(st.integers(0, patch - 1), "rest"),
            "patch_size": patch,
            "hidden_act": data.draw(st.sampled_from(["gelu", "gelu_pytorch_tanh"]), "activation"),
        },
        text_config={
            **TEXT,
            "num_attention_heads": heads,
            "num_hidden_layers": depth,
            "sliding_window": data.draw(st.integers(1, 12), "window"),
            "layer_types": data.draw(
                st.lists(st.sampled_from(kinds), min_size=depth, max_size=depth), "kinds"
            ),
        },
        image_token_index=data.draw(st.integers(0, 60), "token"),
        mm_tokens_per_image=squares**2,
        tie_word_embeddings=data.draw(st.booleans(), "tied"),
    )
    check(config, tmp_path_factory.mktemp("any"), onnx=False, fuzzed=True)
