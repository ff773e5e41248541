"""DistilBERT against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import ACTIVATION, FLAG, HIDDEN, LAYERS, VOCAB
from tests.parity.families.encoder_tests import EncoderTests
from zoo.configs.exporting import write_config
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config


def test_a_spec_of_it_is_written_as_no_bert(tmp_path):
    classes = ["DistilBertForQuestionAnswering"]
    config = TestDistilBert.configured(num_labels=2, architectures=classes)
    spec = spec_of_config(Config(config.to_dict(), "config.json"), name="tiny")
    assert write_config(spec)["architectures"] == classes


class TestDistilBert(EncoderTests):
    model_class = hf.DistilBertForMaskedLM
    configs = {
        "odd heads": dict(
            vocab_size=61, dim=21, n_layers=3, n_heads=3, hidden_dim=17, activation="gelu_new",
            max_position_embeddings=23, sinusoidal_pos_embds=True,
        ),
        "untied": dict(
            vocab_size=33, dim=40, n_layers=1, n_heads=5, hidden_dim=96, activation="relu",
            max_position_embeddings=19, tie_word_embeddings=False,
        ),
        "exact gelu": dict(
            vocab_size=97, dim=28, n_layers=2, n_heads=7, hidden_dim=50, activation="gelu",
            max_position_embeddings=31, dropout=0.3, attention_dropout=0.2, qa_dropout=0.4, seq_classif_dropout=0.5,
        ),
    }  # fmt: skip
    refusals = (
        ("activation", "gelu_nwe", "Did you mean 'gelu_new'"),
        ("architectures", ["DistilBertForMultipleChoice"], "must name a supported class"),
        ("pruned_heads", {"0": [1]}, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 7), "heads")
        return dict(
            vocab_size=VOCAB, dim=heads * data.draw(st.integers(3, 9), "head_dim"), n_layers=LAYERS, n_heads=heads,
            hidden_dim=HIDDEN, activation=ACTIVATION, max_position_embeddings=st.integers(1, 40),
            tie_word_embeddings=FLAG,
        )  # fmt: skip
