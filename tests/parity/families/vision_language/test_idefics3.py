"""Idefics 3 and SmolVLM against transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    SmolVLMConfig,
    SmolVLMForConditionalGeneration,
)
from transformers.models.idefics3.modeling_idefics3 import Idefics3VisionEmbeddings

from specs.language.load import load as load_spec
from tests.parity.families import vision_language_tests as vision_language
from tests.thinned import one_in
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config, ConfigError
from zoo.families.vision_language.idefics3 import _ROUNDED

VISION: dict[str, Any] = dict(
    hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=17, image_size=16, patch_size=4,
    layer_norm_eps=1e-3,
)  # fmt: skip
LLAMA: dict[str, Any] = dict(
    model_type="llama", vocab_size=61, hidden_size=24, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, intermediate_size=33, max_position_embeddings=64, pad_token_id=2,
)  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "smolvlm": dict(
        vision_config={**VISION, "image_size": 13, "num_channels": 1, "hidden_act": "gelu"},
        text_config={**LLAMA, "num_key_value_heads": 4, "head_dim": 10},
        tie_word_embeddings=True,
        image_token_id=60,
        scale_factor=3,
    ),
    "idefics3": dict(vision_config=VISION, text_config=LLAMA, image_token_id=7),
}
CLASSES: dict[str, tuple[type, type]] = {
    "idefics3": (Idefics3Config, Idefics3ForConditionalGeneration),
    "smolvlm": (SmolVLMConfig, SmolVLMForConditionalGeneration),
}

PUBLISHED: dict[str, Any] = {
    "architectures": ["Idefics3ForConditionalGeneration"],
    "image_token_id": 49190,
    "model_type": "idefics3",
    "scale_factor": 4,
    "text_config": {
        "_flash_attn_2_enabled": True,
        "_name_or_path": "None",
        "architectures": ["VLlama3ForCausalLM"],
        "head_dim": 64,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "is_llama_config": True,
        "max_position_embeddings": 8192,
        "model_type": "llama",
        "neftune_noise_alpha": 0.0,
        "num_attention_heads": 9,
        "num_hidden_layers": 30,
        "num_key_value_heads": 3,
        "pad_token_id": 2,
        "perceiver_config": {"model_type": "vllama3", "resampler_depth": 6},
        "pixel_shuffle_factor": 4,
        "qk_layer_norms": False,
        "rms_norm_eps": 1e-05,
        "rope_interleaved": False,
        "rope_theta": 100000,
        "torch_dtype": "bfloat16",
        "transformers.js_config": {"kv_cache_dtype": {"fp16": "float16"}},
        "use_resampler": False,
        "vocab_size": 49280,
    },
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.46.0",
    "use_cache": True,
    "use_reentrant_checkpointing": False,
    "vision_config": {
        "hidden_size": 768,
        "image_size": 512,
        "max_image_size": {"longest_edge": 512},
        "model_type": "idefics3",
        "num_attention_heads": 12,
        "patch_size": 16,
        "size": {"longest_edge": 2048},
        "tie_word_embeddings": False,
        "use_base_siglip": False,
    },
    "vocab_size": 49280,
}
"""The fields of SmolVLM-256M-Instruct's config, with those of training that the reference does not have."""


def check(name: str, data: dict[str, Any], directory: Any, **more: Any) -> None:
    config_class, model_class = CLASSES[name]
    vision_language.check(model_class, config_class(**data), directory, by_row=True, **more)


@one_in(2)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check(name, CONFIGS[name], tmp_path)


def test_a_published_config_is_that_of_the_preset():
    found = spec_of_config(Config(PUBLISHED, "config.json"), name="smolvlm-256m")
    preset = load_spec("smolvlm-256m")
    same = ("source", "summary", "year", "expect")
    assert found.model_copy(update={name: getattr(preset, name) for name in same}) == preset


def _reference_positions(side: int) -> list[int]:
    """The positions of the patches of a whole image in the reference."""
    config = SmolVLMConfig(
        vision_config=dict(hidden_size=1, image_size=side, patch_size=1, num_channels=1)
    ).vision_config
    embeddings = Idefics3VisionEmbeddings(config).requires_grad_(False)
    embeddings.position_embedding.weight.copy_(torch.arange(side**2)[:, None])
    embeddings.patch_embedding.weight.zero_()
    embeddings.patch_embedding.bias.zero_()
    found = embeddings(torch.zeros(1, 1, side, side), torch.ones(1, side, side, dtype=torch.bool))
    return found.flatten().long().tolist()


@pytest.mark.parametrize("side", [16, 24, 26, 27, 32])
def test_the_reference_has_a_position_for_every_patch(side):
    assert _reference_positions(side) == list(range(side**2))


@pytest.mark.parametrize("side", [19, 25])
def test_or_rounds_some_onto_one_another(side):
    assert side in _ROUNDED
    assert _reference_positions(side) != list(range(side**2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vision_config": {**VISION, "image_size": [16, 12]}}, "vision_config.image_size: must be a whole number"),
        ({"vision_config": {**VISION, "image_size": 100}}, "vision_config.image_size: makes 25 patches in a row, some of"),
        ({"vision_config": {**VISION, "image_size": 400}}, "vision_config.image_size: makes 100 patches in a row, some of"),
        ({"vision_config": {**VISION, "attention_chunk_size": 4}}, "unsupported fields:\n  vision_config.attention_chunk_size: 4"),
        ({"text_config": {**LLAMA, "model_type": "gpt2"}}, "text_config.model_type: is not a supported family here"),
        ({"text_config": {**LLAMA, "hidden_act": "sillu"}}, "text_config.hidden_act: is not supported"),
        ({"scale_factor": 3}, "connector.shuffle: must divide the number of patches in a row, which is 4"),
        ({"image_token_id": 61}, "connector.token: must be below vocab_size, which is 61"),
    ],
)  # fmt: skip
def test_unsupported_values_and_fields_are_refused(change, message):
    data = Idefics3Config(**CONFIGS["idefics3"]).to_dict()
    data = {**data, "architectures": ["Idefics3ForConditionalGeneration"], **change}
    with pytest.raises(ConfigError, match=message):
        spec_of_config(Config(data, "config.json"), name="tiny")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["connector={kind: mlp, token: 1}"], "connector.kind mlp"),
        (["connector.bias=true"], "connector"),
        (["connector.norm={kind: rms_norm}"], "connector"),
        (
            ["image.embedding.image_size=400", "connector.shuffle=5"],
            "images whose patch_size makes 25 patches in a row",
        ),
    ],
)
def test_what_has_no_field_is_named(changes, message):
    with pytest.raises(NoFamilyError, match=message):
        write_config(load_spec("smolvlm-256m", changes), "smolvlm")


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    heads, factor = data.draw(st.sampled_from([2, 4]), "heads"), data.draw(st.integers(1, 4), "factor")
    side = factor * data.draw(st.integers(1, 3), "squares")
    patch = data.draw(st.integers(1, 5), "patch")
    config = dict(
        vision_config={
            **VISION,
            "num_hidden_layers": data.draw(st.integers(1, 3), "layers of images"),
            "image_size": side * patch + data.draw(st.integers(0, patch - 1), "rest"),
            "patch_size": patch,
            "hidden_act": data.draw(
                st.sampled_from(["gelu", "gelu_pytorch_tanh", "quick_gelu"]), "activation"
            ),
        },
        text_config={
            **LLAMA,
            "hidden_size": heads * data.draw(st.sampled_from([4, 6, 10]), "head_dim"),
            "num_attention_heads": heads,
            "num_hidden_layers": data.draw(st.integers(1, 3), "layers"),
        },
        image_token_id=data.draw(st.integers(0, 60), "token"),
        scale_factor=factor,
        tie_word_embeddings=data.draw(st.booleans(), "tied"),
    )
    name = data.draw(st.sampled_from(sorted(CLASSES)), "class")
    check(name, config, tmp_path_factory.mktemp("any"), onnx=False, fuzzed=True)
