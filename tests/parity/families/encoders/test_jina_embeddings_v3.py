"""Jina Embeddings 3 against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.encoder_tests import ROTARY, EncoderTests, draw_rotary


class TestJinaEmbeddingsV3(EncoderTests):
    model_class = hf.JinaEmbeddingsV3ForMaskedLM
    configs = {
        "odd heads": ROTARY["odd heads"],
        "one layer": dict(ROTARY["one layer"], hidden_act="relu", type_vocab_size=1),
        "untied": ROTARY["untied"],
    }
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
