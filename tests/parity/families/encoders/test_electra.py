"""ELECTRA against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.encoder_tests import EncoderTests, draw_bert
from tests.parity.families.llamas import ALL


class TestElectra(EncoderTests):
    model_class = hf.ElectraForMaskedLM
    configs = {
        "odd heads": dict(
            vocab_size=61, embedding_size=11, hidden_size=21, num_hidden_layers=3, num_attention_heads=3,
            intermediate_size=17, hidden_act="gelu_new", layer_norm_eps=1e-3, type_vocab_size=3,
            max_position_embeddings=23,
        ),
        "no projection": dict(
            vocab_size=33, embedding_size=40, hidden_size=40, num_hidden_layers=1, num_attention_heads=5,
            intermediate_size=96, hidden_act="relu", layer_norm_eps=1e-6, type_vocab_size=1,
            max_position_embeddings=19,
        ),
        "wide and untied": dict(
            vocab_size=97, embedding_size=35, hidden_size=28, num_hidden_layers=2, num_attention_heads=7,
            intermediate_size=50, hidden_act="silu", layer_norm_eps=1e-12, type_vocab_size=2,
            max_position_embeddings=31, tie_word_embeddings=False,
        ),
    }  # fmt: skip
    heads = ("ForPreTraining", *ALL)
    refusals = (
        ("position_embedding_type", "relative_key", 'must be "absolute"'),
        ("is_decoder", True, "must be false"),
        ("hidden_act", "gelu_nwe", "Did you mean 'gelu_new'"),
        ("architectures", ["ElectraForCausalLM"], "Choose from: "),
    )

    @staticmethod
    def draw(data):
        return draw_bert(data) | dict(embedding_size=st.integers(8, 30))
