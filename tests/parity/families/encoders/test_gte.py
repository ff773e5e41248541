"""GTE against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.encoder_tests import EncoderTests, draw_rotary
from tests.parity.families.llamas import LINEAR, YARN, rotation


class TestGte(EncoderTests):
    model_class = hf.GteForMaskedLM
    configs = {
        "odd heads": dict(
            vocab_size=61, hidden_size=30, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17,
            hidden_act="gelu_new", layer_norm_eps=1e-3, type_vocab_size=3, max_position_embeddings=64,
            rope_parameters=rotation(300.0),
        ),
        "no token types": dict(
            vocab_size=33, hidden_size=40, num_hidden_layers=1, num_attention_heads=5, intermediate_size=96,
            hidden_act="silu", layer_norm_eps=1e-6, type_vocab_size=0, max_position_embeddings=64, rope_parameters=YARN,
        ),
        "untied": dict(
            vocab_size=97, hidden_size=28, num_hidden_layers=2, num_attention_heads=7, intermediate_size=50,
            max_position_embeddings=31, rope_parameters=LINEAR, tie_word_embeddings=False,
        ),
    }  # fmt: skip
    heads = ("Model", "ForSequenceClassification", "ForTokenClassification")
    refusals = (
        ("position_embedding_type", "absolute", 'must be "rope"'),
        ("logn_attention_scale", True, "must be false"),
        ("hidden_act", "gelu_nwe", "Did you mean 'gelu_new'"),
        ("rope_parameters", {"rope_type": "ntk", "factor": 2.0}, "is not supported"),
        ("architectures", ["GteForMaskedLm"], "Did you mean 'GteForMaskedLM'"),
        ("head_dim", 3, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        return draw_rotary(data, token_types=st.integers(0, 3))
