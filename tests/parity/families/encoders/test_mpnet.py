"""MPNet against transformers, which counts real tokens itself: by their ids, which are not 1."""

from __future__ import annotations

import transformers as hf

from tests.parity.families.encoder_tests import EncoderTests, draw_bert


def test_distances_beyond_the_last_bucket(tmp_path):
    config = TestMPNet.configured("odd heads", max_position_embeddings=160)
    TestMPNet().check(hf.MPNetForMaskedLM, config, tmp_path, length=150)


class TestMPNet(EncoderTests):
    model_class = hf.MPNetForMaskedLM
    configs = {
        "odd heads": dict(
            vocab_size=61, hidden_size=21, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17,
            hidden_act="gelu_new", layer_norm_eps=1e-3, max_position_embeddings=23,
        ),
        "one layer": dict(
            vocab_size=33, hidden_size=40, num_hidden_layers=1, num_attention_heads=5, intermediate_size=96,
            hidden_act="relu", layer_norm_eps=1e-6, max_position_embeddings=19,
        ),
        "untied": dict(
            vocab_size=97, hidden_size=28, num_hidden_layers=2, num_attention_heads=7, intermediate_size=50,
            hidden_act="gelu", layer_norm_eps=1e-12, max_position_embeddings=31, tie_word_embeddings=False,
        ),
    }  # fmt: skip
    options = {"position_ids": False}
    refusals = (
        ("relative_attention_num_buckets", 48, "must be 32"),
        ("hidden_act", "gelu_nwe", "Did you mean 'gelu_new'"),
        ("max_position_embeddings", 2, "must exceed 2, where positions start"),
        ("architectures", ["MPNetForMaskedLm"], "Did you mean 'MPNetForMaskedLM'"),
        ("sliding_window", 3, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        fields = draw_bert(data)
        del fields["type_vocab_size"]
        return fields | dict(max_position_embeddings=fields["max_position_embeddings"] + 2)
