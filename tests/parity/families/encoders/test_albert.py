"""ALBERT against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.encoder_tests import EncoderTests, draw_bert


class TestAlbert(EncoderTests):
    model_class = hf.AlbertForMaskedLM
    configs = {
        "one layer for all": dict(
            vocab_size=61, embedding_size=11, hidden_size=21, num_hidden_layers=3, num_attention_heads=3,
            intermediate_size=17, hidden_act="gelu_new", layer_norm_eps=1e-3, type_vocab_size=3,
            max_position_embeddings=23,
        ),
        "groups of unequal length": dict(
            vocab_size=33, embedding_size=12, hidden_size=40, num_hidden_layers=5, num_hidden_groups=2,
            inner_group_num=3, num_attention_heads=5, intermediate_size=96, hidden_act="relu", layer_norm_eps=1e-6,
            type_vocab_size=1, max_position_embeddings=19,
        ),
        "all its own, as wide as its embedding": dict(
            vocab_size=97, embedding_size=28, hidden_size=28, num_hidden_layers=3, num_hidden_groups=3,
            num_attention_heads=7, intermediate_size=50, hidden_act="silu", layer_norm_eps=1e-12, type_vocab_size=2,
            max_position_embeddings=31, tie_word_embeddings=False,
        ),
    }  # fmt: skip
    of_others = ("groups of unequal length",)
    refusals = (
        ("position_embedding_type", "relative_key", 'must be "absolute"'),
        ("hidden_act", "gelu_nwe", "Did you mean 'gelu_new'"),
        ("num_hidden_groups", 4, "must be from 1 to num_hidden_layers, which is 3"),
        ("inner_group_num", 0, "must be 1 or more"),
        ("architectures", ["AlbertForMultipleChoice"], "must name a supported class"),
    )

    @staticmethod
    def draw(data):
        fields = draw_bert(data)
        fields["num_hidden_groups"] = data.draw(st.integers(1, fields["num_hidden_layers"]), "groups")
        fields["inner_group_num"] = data.draw(st.integers(1, 2), "inner")
        return fields | dict(embedding_size=st.integers(8, 30))
