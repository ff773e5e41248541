"""DeBERTa, V2 and V3 against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from specs.forms.canonical import canonical, differences
from specs.language.load import load
from tests.parity.families.draws import FLAG
from tests.parity.families.encoder_tests import EncoderTests, draw_bert
from tests.parity.families.harness import check

V3 = dict(
    relative_attention=True, share_att_key=True, norm_rel_ebd="layer_norm", position_biased_input=False,
    pos_att_type="p2c|c2p",
)  # fmt: skip


def test_distances_beyond_the_last_bucket(tmp_path):
    config = TestDeberta.configured("V3", max_position_embeddings=160, max_relative_positions=24)
    check(hf.DebertaV2ForMaskedLM, config, tmp_path, length=150)


def test_the_default_scale_counts_the_products_of_a_score():
    unstated = load("deberta-v3-xsmall")
    stated = load("deberta-v3-xsmall", [f"encoder.block.attention.scale={(3 * 64) ** -0.5!r}"])
    assert not list(differences(canonical(unstated), canonical(stated)))


class TestDeberta(EncoderTests):
    model_class = hf.DebertaV2ForMaskedLM
    configs = {
        "V3": dict(
            vocab_size=61, hidden_size=21, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17,
            hidden_act="gelu_new", layer_norm_eps=1e-3, max_position_embeddings=23, position_buckets=6,
            pooler_hidden_act="tanh", **V3,
        ),
        "positions in the embedding": dict(
            vocab_size=33, hidden_size=40, num_hidden_layers=1, num_attention_heads=5, intermediate_size=96,
            hidden_act="relu", layer_norm_eps=1e-6, max_position_embeddings=19, type_vocab_size=2, **V3,
        ) | {"position_biased_input": True, "norm_rel_ebd": "none"},
        "untied": dict(
            vocab_size=97, hidden_size=28, num_hidden_layers=2, num_attention_heads=7, intermediate_size=50,
            hidden_act="gelu", layer_norm_eps=1e-12, max_position_embeddings=31, tie_word_embeddings=False,
            max_relative_positions=5, **V3,
        ) | {"pos_att_type": ["c2p"]},
        "not legacy": dict(
            vocab_size=47, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, intermediate_size=40,
            max_position_embeddings=40, position_buckets=8, max_relative_positions=12, legacy=False,
            tie_word_embeddings=False, type_vocab_size=3, **V3,
        ) | {"pos_att_type": ["p2c"]},
    }  # fmt: skip
    refusals = (
        ("relative_attention", False, "must be true: attention without distances is not supported"),
        ("share_att_key", False, "must be true: projections of distances of their own"),
        ("pos_att_type", ["p2p"], "must name c2p, p2c or both"),
        ("norm_rel_ebd", "rms_norm", "is not supported"),
        ("conv_kernel_size", 3, "a convolution beside the first layer"),
        ("embedding_size", 12, "a projection of the embedding before its norm"),
        ("pooler_dropout", 0.1, "must be 0"),
        ("hidden_act", "gelu_nwe", "Did you mean 'gelu_new'"),
        ("architectures", ["DebertaV2ForMaskedLm"], "Did you mean 'DebertaV2ForMaskedLM'"),
    )

    @staticmethod
    def draw(data):
        return draw_bert(data) | V3 | dict(
            type_vocab_size=st.integers(0, 3), position_biased_input=FLAG,
            norm_rel_ebd=st.sampled_from(["none", "layer_norm"]),
            pos_att_type=st.sampled_from(["c2p", "p2c", "c2p|p2c", ["p2c", "c2p"]]),
            position_buckets=st.sampled_from([-1, 4, 6, 10]), max_relative_positions=st.sampled_from([7, 12, 30]),
            legacy=FLAG,
        )  # fmt: skip


V1 = dict(relative_attention=True, position_biased_input=False, pos_att_type=["c2p", "p2c"])


class TestFirstDeberta(EncoderTests):
    model_class = hf.DebertaForMaskedLM
    configs = {
        "both": dict(
            vocab_size=61, hidden_size=21, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17,
            hidden_act="gelu_new", layer_norm_eps=1e-3, max_position_embeddings=23, max_relative_positions=5,
            pooler_hidden_act="tanh", **V1,
        ),
        "positions in the embedding": dict(
            vocab_size=33, hidden_size=40, num_hidden_layers=1, num_attention_heads=5, intermediate_size=96,
            hidden_act="relu", layer_norm_eps=1e-6, max_position_embeddings=19, type_vocab_size=2, **V1,
        ) | {"position_biased_input": True, "pos_att_type": ["c2p"]},
        "untied": dict(
            vocab_size=97, hidden_size=28, num_hidden_layers=2, num_attention_heads=7, intermediate_size=50,
            max_position_embeddings=31, tie_word_embeddings=False, **V1,
        ) | {"pos_att_type": ["p2c"]},
        "not legacy": dict(
            vocab_size=47, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, intermediate_size=40,
            max_position_embeddings=40, max_relative_positions=12, legacy=False, type_vocab_size=3, **V1,
        ),
    }  # fmt: skip
    refusals = (
        ("relative_attention", False, "must be true: attention without distances is not supported"),
        ("pos_att_type", ["p2p"], "must name c2p, p2c or both"),
        ("talking_head", True, "projections of scores between heads"),
        ("embedding_size", 12, "a projection of the embedding before its norm"),
        ("position_buckets", 4, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        return draw_bert(data) | V1 | dict(
            type_vocab_size=st.integers(0, 3), position_biased_input=FLAG,
            pos_att_type=st.sampled_from([["c2p"], ["p2c"], ["p2c", "c2p"]]),
            max_relative_positions=st.sampled_from([-1, 3, 7, 30]), legacy=FLAG,
        )  # fmt: skip
