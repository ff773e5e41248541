"""wav2vec2-BERT against transformers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    Wav2Vec2BertConfig,
    Wav2Vec2BertForAudioFrameClassification,
    Wav2Vec2BertForCTC,
    Wav2Vec2BertForSequenceClassification,
    Wav2Vec2BertModel,
)

from tests.parity.families.harness import check
from tests.thinned import one_in
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config, ConfigError

CONFIGS: dict[str, dict[str, Any]] = {
    "usual": dict(
        vocab_size=11, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=37,
        feature_projection_input_dim=10, left_max_position_embeddings=4, right_max_position_embeddings=2,
        conv_depthwise_kernel_size=5,
    ),
    "far": dict(
        vocab_size=7, hidden_size=16, num_hidden_layers=1, num_attention_heads=4, intermediate_size=20,
        feature_projection_input_dim=6, conv_depthwise_kernel_size=31, hidden_act="gelu", layer_norm_eps=1e-3,
        pad_token_id=6,
    ),
    "near": dict(
        vocab_size=5, hidden_size=20, num_hidden_layers=3, num_attention_heads=2, intermediate_size=12,
        feature_projection_input_dim=4, left_max_position_embeddings=0, right_max_position_embeddings=1,
        conv_depthwise_kernel_size=1,
    ),
}  # fmt: skip


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check(Wav2Vec2BertForCTC, Wav2Vec2BertConfig(**CONFIGS[name]), tmp_path, sides=("right",))


@pytest.mark.slow
@pytest.mark.parametrize(
    "model_class",
    [Wav2Vec2BertModel, Wav2Vec2BertForAudioFrameClassification, Wav2Vec2BertForSequenceClassification],
)
def test_other_heads(model_class, tmp_path):
    config = Wav2Vec2BertConfig(**CONFIGS["usual"], classifier_proj_size=9)
    check(model_class, config, tmp_path, sides=("right",))


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    heads = data.draw(st.integers(1, 4), "heads")
    config = Wav2Vec2BertConfig(
        vocab_size=data.draw(st.integers(1, 20), "vocab_size"),
        hidden_size=heads * data.draw(st.integers(2, 6), "width"),
        num_hidden_layers=data.draw(st.integers(1, 3), "layers"),
        num_attention_heads=heads,
        intermediate_size=data.draw(st.integers(1, 40), "hidden"),
        feature_projection_input_dim=data.draw(st.integers(2, 12), "features"),
        left_max_position_embeddings=data.draw(st.integers(0, 20), "before"),
        right_max_position_embeddings=data.draw(st.integers(0, 20), "after"),
        conv_depthwise_kernel_size=data.draw(st.sampled_from([1, 3, 9, 31]), "kernel"),
        hidden_act=data.draw(st.sampled_from(["swish", "gelu", "relu"]), "activation"),
        layer_norm_eps=data.draw(st.sampled_from([1e-5, 1e-2]), "eps"),
    )
    seed = data.draw(st.integers(0, 99), "seed")
    options: dict[str, Any] = dict(seed=seed, sides=("right",), onnx=seed % 5 == 0, fuzzed=True)
    check(Wav2Vec2BertForCTC, config, tmp_path_factory.mktemp("bert"), **options)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"add_adapter": True}, r"add_adapter: must be false.*adapters"),
    ({"position_embeddings_type": "rotary"}, r"position_embeddings_type: must be.*relative_key"),
    ({"position_embeddings_type": None}, r"position_embeddings_type: must be.*relative_key"),
    ({"use_weighted_layer_sum": True}, r"use_weighted_layer_sum: must be false"),
    ({"architectures": ["Wav2Vec2BertForXVector"]}, r"must not name Wav2Vec2BertForXVector"),
]


@pytest.mark.parametrize(("change", "rule"), REFUSED, ids=[str(case[0]) for case in REFUSED])
def test_unsupported_values_are_refused(change, rule):
    config = Config({"model_type": "wav2vec2-bert", **change}, "config.json")
    with pytest.raises(ConfigError, match=rule):
        spec_of_config(config, name="wav2vec2-bert", strict=True)
