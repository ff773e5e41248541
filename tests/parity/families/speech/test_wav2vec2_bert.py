"""wav2vec2-BERT against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FEW_LAYERS
from tests.parity.families.family import RightPaddedTests


class TestWav2Vec2Bert(RightPaddedTests):
    model_class = hf.Wav2Vec2BertForCTC
    configs = {
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
    others = [
        (model_class, {"classifier_proj_size": 9})
        for model_class in (
            hf.Wav2Vec2BertModel,
            hf.Wav2Vec2BertForAudioFrameClassification,
            hf.Wav2Vec2BertForSequenceClassification,
        )
    ]
    refusals = (
        ("add_adapter", True, "must be false", "adapters"),
        ("position_embeddings_type", "rotary", "must be", "relative_key"),
        ("position_embeddings_type", None, "must be", "relative_key"),
        ("use_weighted_layer_sum", True, "must be false"),
        ({"architectures": ["Wav2Vec2BertForXVector"]}, "must not name Wav2Vec2BertForXVector"),
    )

    def drawn_class(self, data):
        return self.model_class

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 4), "heads")
        return dict(
            vocab_size=st.integers(1, 20), hidden_size=heads * data.draw(st.integers(2, 6), "width"),
            num_hidden_layers=FEW_LAYERS, num_attention_heads=heads, intermediate_size=st.integers(1, 40),
            feature_projection_input_dim=st.integers(2, 12), left_max_position_embeddings=st.integers(0, 20),
            right_max_position_embeddings=st.integers(0, 20), conv_depthwise_kernel_size=st.sampled_from([1, 3, 9, 31]),
            hidden_act=st.sampled_from(["swish", "gelu", "relu"]), layer_norm_eps=st.sampled_from([1e-5, 1e-2]),
        )  # fmt: skip
