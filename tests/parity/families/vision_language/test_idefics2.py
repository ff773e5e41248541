"""Idefics 2 against transformers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Idefics2Config, Idefics2ForConditionalGeneration

from specs.language.load import load as load_spec
from tests.parity.families import vision_language_tests as vision_language
from tests.thinned import one_in
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config, ConfigError

VISION: dict[str, Any] = dict(
    hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=17, image_size=12, patch_size=4,
    layer_norm_eps=1e-3,
)  # fmt: skip
RESAMPLER: dict[str, Any] = dict(
    hidden_size=20, rms_norm_eps=1e-4, resampler_n_latents=5, resampler_depth=2, resampler_n_heads=6,
    resampler_head_dim=4, num_key_value_heads=3,
)  # fmt: skip
LLAMA: dict[str, Any] = dict(
    model_type="llama", vocab_size=61, hidden_size=20, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, head_dim=8, intermediate_size=33, max_position_embeddings=64, rms_norm_eps=1e-3,
)  # fmt: skip
MISTRAL: dict[str, Any] = {**LLAMA, "model_type": "mistral", "sliding_window": 6}
CONFIGS: dict[str, dict[str, Any]] = {
    "idefics2": dict(
        vision_config=VISION, perceiver_config=RESAMPLER, text_config=MISTRAL, image_token_id=60
    ),
    "as many keys, gelu": dict(
        vision_config={**VISION, "image_size": 11, "num_channels": 1},
        perceiver_config={**RESAMPLER, "num_key_value_heads": 6, "hidden_act": "gelu", "resampler_depth": 1},
        text_config={**LLAMA, "hidden_act": "gelu_pytorch_tanh"},
        image_token_id=7,
        tie_word_embeddings=True,
    ),
    "norms of the decoder": dict(
        vision_config=VISION,
        perceiver_config={k: v for k, v in RESAMPLER.items() if k not in ("hidden_size", "rms_norm_eps")},
        text_config=MISTRAL,
        image_token_id=0,
    ),
}


def check(data: dict[str, Any], directory: Any, **more: Any) -> Any:
    return vision_language.check(
        Idefics2ForConditionalGeneration, Idefics2Config(**data), directory, by_row=True, **more
    )


@one_in(2)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check(CONFIGS[name], tmp_path)


def _read(change: dict[str, Any], name: str = "idefics2") -> Any:
    """The spec of a config with changes, as its file states it."""
    data = {
        "architectures": ["Idefics2ForConditionalGeneration"],
        "model_type": "idefics2",
        **CONFIGS[name],
        **change,
    }
    return spec_of_config(Config(data, "config.json"), name="tiny")


def test_norms_are_those_of_the_decoder_where_no_width_is_stated():
    assert _read({}).connector.block.norm.eps == 1e-4
    assert _read({}, "norms of the decoder").connector.block.norm.eps == 1e-3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vision_config": {**VISION, "image_size": 100}}, "vision_config.image_size: makes 25 patches in a row, some of"),
        ({"vision_config": {**VISION, "attention_chunk_size": 4}}, "unsupported fields:\n  vision_config.attention_chunk_size: 4"),
        ({"perceiver_config": {**RESAMPLER, "attention_chunk_size": 4}}, "unsupported fields:\n  perceiver_config.attention_chunk_size: 4"),
        ({"perceiver_config": {**RESAMPLER, "hidden_act": "sillu"}}, "perceiver_config.hidden_act: is not supported"),
        ({"perceiver_config": {**RESAMPLER, "num_key_value_heads": 4}}, "connector.block.attention.kv_heads: must divide heads"),
        ({"text_config": {**MISTRAL, "model_type": "gpt2"}}, "text_config.model_type: is not a supported family here"),
        ({"image_token_id": 61}, "connector.token: must be below vocab_size, which is 61"),
    ],
)  # fmt: skip
def test_unsupported_values_and_fields_are_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        _read(change)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["connector={kind: mlp, token: 1}"], "connector.kind mlp"),
        (["image.embedding.image_size=350"], "images whose patch_size makes 25 patches in a row"),
        (["connector.block.feed_forward.hidden=64"], "connector"),
        (["connector.projection.hidden=64"], "connector"),
        (["connector.block.attention.qk_norm={norm: {kind: rms_norm}}"], "connector"),
    ],
)
def test_what_has_no_field_is_named(changes, message):
    with pytest.raises(NoFamilyError, match=message):
        write_config(load_spec("idefics2-8b", changes), "idefics2")


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    heads, groups = data.draw(st.sampled_from([2, 4]), "heads"), data.draw(st.integers(1, 3), "groups")
    kv_heads, patch = data.draw(st.integers(1, 3), "kv heads"), data.draw(st.integers(1, 5), "patch")
    width = heads * data.draw(st.sampled_from([4, 6, 10]), "head_dim")
    config = dict(
        vision_config={
            **VISION,
            "num_hidden_layers": data.draw(st.integers(1, 3), "layers of images"),
            "image_size": data.draw(st.integers(1, 5), "side") * patch
            + data.draw(st.integers(0, patch - 1), "rest"),
            "patch_size": patch,
        },
        perceiver_config={
            "hidden_size": width,
            "rms_norm_eps": data.draw(st.sampled_from([1e-6, 1e-3]), "eps"),
            "resampler_n_latents": data.draw(st.integers(1, 6), "queries"),
            "resampler_depth": data.draw(st.integers(1, 3), "depth"),
            "resampler_n_heads": groups * kv_heads,
            "num_key_value_heads": kv_heads,
            "resampler_head_dim": data.draw(st.integers(1, 6), "width of heads"),
            "hidden_act": data.draw(st.sampled_from(["silu", "gelu"]), "activation"),
        },
        text_config={
            **LLAMA,
            "model_type": data.draw(st.sampled_from(["llama", "mistral", "qwen2"]), "words"),
            "hidden_size": width,
            "num_attention_heads": heads,
            "num_hidden_layers": data.draw(st.integers(1, 3), "layers"),
        },
        image_token_id=data.draw(st.integers(0, 60), "token"),
        tie_word_embeddings=data.draw(st.booleans(), "tied"),
    )
    check(config, tmp_path_factory.mktemp("any"), onnx=False, fuzzed=True)
