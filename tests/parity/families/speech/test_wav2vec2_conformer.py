"""wav2vec2-Conformer against transformers, whose padding reaches real frames through convolutions: its rows are read alone."""

from __future__ import annotations

import json
from typing import Any

import torch
import transformers as hf
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import pad

from tests.parity.families.draws import FEW_LAYERS, FLAG
from tests.parity.families.family import RightPaddedTests
from zoo.configs.exporting import write_config
from zoo.configs.importing import import_spec

SIZES: dict[str, Any] = dict(
    hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=37, vocab_size=11,
    conv_dim=[6, 8, 10], conv_kernel=[10, 3, 2], conv_stride=[5, 2, 2], conv_depthwise_kernel_size=5,
    num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4,
)  # fmt: skip

UNREAD = "encoder.pos_conv_embed."


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


class TestWav2Vec2Conformer(RightPaddedTests):
    model_class = hf.Wav2Vec2ConformerForCTC
    configs = {
        "relative": {**SIZES, "feat_extract_norm": "layer", "hidden_act": "swish"},
        "rotary": {
            **SIZES, "feat_extract_norm": "layer", "position_embeddings_type": "rotary", "rotary_embedding_base": 50,
            "num_hidden_layers": 3, "conv_bias": True,
        },
        "no position": {**SIZES, "feat_extract_norm": "layer", "position_embeddings_type": None, "pad_token_id": 6},
        "first convolution normed over time": {**SIZES, "feat_extract_norm": "group", "feat_extract_activation": "relu"},
        "rotary, masked in training": {**SIZES, "position_embeddings_type": "rotary", "mask_time_prob": 0.0},
    }  # fmt: skip
    others = [
        (model_class, {"classifier_proj_size": 9})
        for model_class in (
            hf.Wav2Vec2ConformerModel,
            hf.Wav2Vec2ConformerForAudioFrameClassification,
            hf.Wav2Vec2ConformerForSequenceClassification,
        )
    ]
    of_others = ("relative", "rotary")
    options = {"sides": ("right",), "without": (UNREAD, f"wav2vec2_conformer.{UNREAD}")}
    refusals = (
        ("add_adapter", True, "must be false", "adapters"),
        ("position_embeddings_type", "rotaty", "is not supported"),
        ("use_weighted_layer_sum", True, "must be false"),
        ("layer_norm_eps", 1e-6, "must be 1e-05: the norms of its blocks"),
        ({"architectures": ["Wav2Vec2ConformerForXVector"]}, "must not name Wav2Vec2ConformerForXVector"),
        (
            {"architectures": ["Wav2Vec2ConformerForPreTraining"]},
            "must not name Wav2Vec2ConformerForPreTraining",
        ),
    )

    def check(self, model_class, config, directory, **options):
        return super().check(alone(model_class), config, directory, **options)

    def drawn_class(self, data):
        return self.model_class

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 4), "heads")
        layer = st.tuples(st.integers(1, 9), st.integers(1, 4))
        stem = data.draw(st.lists(layer, min_size=1, max_size=3), "stem")
        return dict(
            vocab_size=st.integers(1, 20), hidden_size=heads * 2 * data.draw(st.integers(1, 4), "width"),
            num_hidden_layers=FEW_LAYERS, num_attention_heads=heads, intermediate_size=st.integers(1, 40),
            conv_dim=[channels + 2 for channels, _ in stem], conv_stride=[stride for _, stride in stem],
            conv_kernel=[stride + data.draw(st.integers(0, 3), "beyond") for _, stride in stem], conv_bias=FLAG,
            feat_extract_norm=st.sampled_from(["layer", "group"]),
            conv_depthwise_kernel_size=st.sampled_from([1, 3, 9, 31]),
            position_embeddings_type=st.sampled_from(["relative", "rotary", None]),
            rotary_embedding_base=st.sampled_from([10000, 100]), hidden_act=st.sampled_from(["swish", "gelu", "relu"]),
            num_conv_pos_embedding_groups=1,
        )  # fmt: skip


def test_a_config_without_a_position_is_read_and_written(tmp_path):
    TestWav2Vec2Conformer.configured("no position").save_pretrained(tmp_path)
    spec = import_spec(tmp_path)
    assert spec.position.kind == "none"
    assert write_config(spec)["position_embeddings_type"] is None
    saved = json.loads((tmp_path / "config.json").read_text())
    del saved["position_embeddings_type"]
    (tmp_path / "config.json").write_text(json.dumps(saved))
    assert import_spec(tmp_path).position.kind == "relative_sinusoidal"
