"""Jina Embeddings 3 against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.encoder_tests import EncoderTests, draw_rotary
from tests.parity.families.llamas import LINEAR, YARN, rotation


class TestJinaEmbeddingsV3(EncoderTests):
    model_class = hf.JinaEmbeddingsV3ForMaskedLM
    configs = {
        "odd heads": dict(
            vocab_size=61, hidden_size=30, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17,
            hidden_act="gelu_new", layer_norm_eps=1e-3, type_vocab_size=3, max_position_embeddings=64,
            rope_parameters=rotation(300.0),
        ),
        "one layer": dict(
            vocab_size=33, hidden_size=40, num_hidden_layers=1, num_attention_heads=5, intermediate_size=96,
            hidden_act="relu", layer_norm_eps=1e-6, type_vocab_size=1, max_position_embeddings=64, rope_parameters=YARN,
        ),
        "untied": dict(
            vocab_size=97, hidden_size=28, num_hidden_layers=2, num_attention_heads=7, intermediate_size=50,
            max_position_embeddings=31, rope_parameters=LINEAR, tie_word_embeddings=False,
        ),
    }  # fmt: skip
    refusals = (
        ("type_vocab_size", 0, "must be 1 or more"),
        ("hidden_act", "gelu_nwe", "Did you mean 'gelu_new'"),
        ("rope_parameters", {"rope_type": "yran"}, "Did you mean 'yarn'"),
        ("architectures", ["JinaEmbeddingsV3ForMaskedLm"], "Did you mean 'JinaEmbeddingsV3ForMaskedLM'"),
        ("head_dim", 3, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        return draw_rotary(data, token_types=st.integers(1, 3))
