"""wav2vec2-Conformer against transformers, whose padding reaches real frames through convolutions: its rows are read alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import pad
from transformers import (
    Wav2Vec2ConformerConfig,
    Wav2Vec2ConformerForAudioFrameClassification,
    Wav2Vec2ConformerForCTC,
    Wav2Vec2ConformerForSequenceClassification,
    Wav2Vec2ConformerModel,
)

from tests.parity.families.harness import check
from tests.thinned import one_in
from zoo.configs.exporting import write_config
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import Config, ConfigError

SIZES: dict[str, Any] = dict(
    hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=37, vocab_size=11,
    conv_dim=[6, 8, 10], conv_kernel=[10, 3, 2], conv_stride=[5, 2, 2], conv_depthwise_kernel_size=5,
    num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4,
)  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "relative": {**SIZES, "feat_extract_norm": "layer", "hidden_act": "swish"},
    "rotary": {
        **SIZES, "feat_extract_norm": "layer", "position_embeddings_type": "rotary", "rotary_embedding_base": 50,
        "num_hidden_layers": 3, "conv_bias": True,
    },
    "no position": {**SIZES, "feat_extract_norm": "layer", "position_embeddings_type": None, "pad_token_id": 6},
    "first convolution normed over time": {**SIZES, "feat_extract_norm": "group", "feat_extract_activation": "relu"},
    "rotary, masked in training": {**SIZES, "position_embeddings_type": "rotary", "mask_time_prob": 0.0},
}  # fmt: skip

UNREAD = "encoder.pos_conv_embed."
OPTIONS: dict[str, Any] = {"sides": ("right",), "without": (UNREAD, f"wav2vec2_conformer.{UNREAD}")}


def alone(model_class: Any) -> type:
    """The class, reading each row by itself and without its padding."""

    def forward(self: Any, input_values: Tensor, attention_mask: Tensor | None = None, **more: Any) -> Any:
        read = model_class.forward.__get__(self)
        if attention_mask is None:
            return read(input_values, **more)
        counts = attention_mask.sum(1).tolist()
        rows = [read(row[None, :count], **more) for row, count in zip(input_values, counts, strict=True)]
        found = {name: [row[name] for row in rows] for name in rows[0] if isinstance(rows[0][name], Tensor)}
        longest = {name: max(each.shape[1] for each in values) for name, values in found.items()}
        return {
            name: torch.cat(
                [
                    each if each.ndim < 3 else pad(each, (0, 0, 0, longest[name] - each.shape[1]))
                    for each in values
                ]
            )
            for name, values in found.items()
        }

    return type(model_class.__name__, (model_class,), {"forward": forward})


@one_in(5)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name, tmp_path):
    check(alone(Wav2Vec2ConformerForCTC), Wav2Vec2ConformerConfig(**CONFIGS[name]), tmp_path, **OPTIONS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model_class",
    [
        Wav2Vec2ConformerModel,
        Wav2Vec2ConformerForAudioFrameClassification,
        Wav2Vec2ConformerForSequenceClassification,
    ],
)
@pytest.mark.parametrize("name", ["relative", "rotary"])
def test_other_heads(name, model_class, tmp_path):
    config = Wav2Vec2ConformerConfig(**CONFIGS[name], classifier_proj_size=9)
    check(alone(model_class), config, tmp_path, **OPTIONS)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    heads = data.draw(st.integers(1, 4), "heads")
    stem = data.draw(
        st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=3), "stem"
    )
    config = Wav2Vec2ConformerConfig(
        vocab_size=data.draw(st.integers(1, 20), "vocab_size"),
        hidden_size=heads * 2 * data.draw(st.integers(1, 4), "width"),
        num_hidden_layers=data.draw(st.integers(1, 3), "layers"),
        num_attention_heads=heads,
        intermediate_size=data.draw(st.integers(1, 40), "hidden"),
        conv_dim=[channels + 2 for channels, _ in stem],
        conv_stride=[stride for _, stride in stem],
        conv_kernel=[stride + data.draw(st.integers(0, 3), "beyond") for _, stride in stem],
        conv_bias=data.draw(st.booleans(), "conv_bias"),
        feat_extract_norm=data.draw(st.sampled_from(["layer", "group"]), "norm"),
        conv_depthwise_kernel_size=data.draw(st.sampled_from([1, 3, 9, 31]), "kernel"),
        position_embeddings_type=data.draw(st.sampled_from(["relative", "rotary", None]), "position"),
        rotary_embedding_base=data.draw(st.sampled_from([10000, 100]), "base"),
        hidden_act=data.draw(st.sampled_from(["swish", "gelu", "relu"]), "activation"),
        num_conv_pos_embedding_groups=1,
    )
    seed = data.draw(st.integers(0, 99), "seed")
    options: dict[str, Any] = dict(seed=seed, **OPTIONS, onnx=seed % 5 == 0, fuzzed=True)
    check(alone(Wav2Vec2ConformerForCTC), config, tmp_path_factory.mktemp("conformer"), **options)


def test_a_config_without_a_position_is_read_and_written(tmp_path):
    Wav2Vec2ConformerConfig(**CONFIGS["no position"]).save_pretrained(tmp_path)
    spec = import_spec(tmp_path)
    assert spec.position.kind == "none"
    assert write_config(spec)["position_embeddings_type"] is None
    stated = json.loads((tmp_path / "config.json").read_text())
    del stated["position_embeddings_type"]
    (tmp_path / "config.json").write_text(json.dumps(stated))
    assert import_spec(tmp_path).position.kind == "relative_sinusoidal"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"add_adapter": True}, r"add_adapter: must be false.*adapters"),
    ({"position_embeddings_type": "rotaty"}, r"position_embeddings_type: is not supported"),
    ({"use_weighted_layer_sum": True}, r"use_weighted_layer_sum: must be false"),
    ({"layer_norm_eps": 1e-6}, r"layer_norm_eps: must be 1e-05: the norms of its blocks"),
    ({"architectures": ["Wav2Vec2ConformerForXVector"]}, r"must not name Wav2Vec2ConformerForXVector"),
    (
        {"architectures": ["Wav2Vec2ConformerForPreTraining"]},
        r"must not name Wav2Vec2ConformerForPreTraining",
    ),
]


@pytest.mark.parametrize(("change", "rule"), REFUSED, ids=[str(case[0]) for case in REFUSED])
def test_unsupported_values_are_refused(change, rule):
    config = Config({"model_type": "wav2vec2-conformer", **change}, "config.json")
    with pytest.raises(ConfigError, match=rule):
        spec_of_config(config, name="wav2vec2-conformer", strict=True)
