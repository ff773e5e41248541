"""ModernBERT against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import ACTIVATION, FLAG, HIDDEN, VOCAB
from tests.parity.families.encoder_tests import EPS, EncoderTests
from tests.parity.families.harness import check

TOKENS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2)
FULL, LOCAL = "full_attention", "sliding_attention"
DEFAULT = {"rope_type": "default", "rope_theta": 5000.0}
LINEAR = {"rope_type": "linear", "rope_theta": 700.0, "factor": 2.5}
YARN = {"rope_type": "yarn", "rope_theta": 300.0, "factor": 4.0, "original_max_position_embeddings": 32}


def test_the_mean_of_all_tokens(tmp_path):
    config = TestModernBert.configured("stated types", classifier_pooling="mean", num_labels=4)
    check(hf.ModernBertForSequenceClassification, config, tmp_path)


class TestModernBert(EncoderTests):
    model_class = hf.ModernBertForMaskedLM
    defaults = {**TOKENS}
    configs = {
        "every other": dict(
            vocab_size=61, hidden_size=30, num_hidden_layers=4, num_attention_heads=3, intermediate_size=17,
            hidden_activation="gelu_new", norm_eps=1e-3, max_position_embeddings=64, local_attention=6,
            global_attn_every_n_layers=2, attention_bias=True, classifier_activation="relu",
            architectures=["ModernBertForSequenceClassification"],  # which reads every field that is refused
        ),
        "stated types": dict(
            vocab_size=33, hidden_size=40, num_hidden_layers=3, num_attention_heads=5, intermediate_size=96,
            hidden_activation="silu", norm_eps=1e-6, norm_bias=True, max_position_embeddings=128, local_attention=4,
            layer_types=[LOCAL, FULL, LOCAL], rope_parameters={FULL: YARN, LOCAL: DEFAULT}, mlp_bias=True,
            decoder_bias=False, classifier_bias=True,
        ),
        "untied": dict(
            vocab_size=97, hidden_size=28, num_hidden_layers=7, num_attention_heads=2, intermediate_size=50,
            max_position_embeddings=128, local_attention=9, rope_parameters={FULL: DEFAULT, LOCAL: LINEAR},
            tie_word_embeddings=False,
        ),
    }  # fmt: skip
    refusals = (
        ("position_embedding_type", "relative_key", 'must be "absolute"'),
        ("hidden_activation", "gelu_nwe", "Did you mean 'gelu_new'"),
        ("classifier_pooling", "max", "Choose from: cls, mean"),
        ("layer_types", [FULL, "chunked_attention", LOCAL, FULL], "must have supported kinds only"),
        ("global_attn_every_n_layers", 0, "must be at least 1"),
        ("rope_parameters", {FULL: {"rope_type": "yran"}}, "Did you mean 'yarn'"),
        ("rope_scaling", {"rope_type": "linear", "factor": 2.0}, "must be null: rope_parameters hold it"),
        ("local_attention", 1, "must be 2 or more"),
    )

    @staticmethod
    def draw(data):
        heads, layers = data.draw(st.integers(1, 5), "heads"), data.draw(st.integers(1, 6), "layers")
        kinds = st.lists(st.sampled_from([FULL, LOCAL]), min_size=layers, max_size=layers)
        ropes = st.sampled_from([DEFAULT, LINEAR, YARN])
        flags = ("norm_bias", "attention_bias", "mlp_bias", "decoder_bias", "classifier_bias")
        return dict(
            vocab_size=VOCAB, hidden_size=heads * 2 * data.draw(st.integers(2, 6), "pairs"), num_hidden_layers=layers,
            num_attention_heads=heads, intermediate_size=HIDDEN, hidden_activation=ACTIVATION, norm_eps=EPS,
            max_position_embeddings=128, local_attention=st.integers(2, 11), layer_types=kinds,
            rope_parameters={FULL: data.draw(ropes, "full"), LOCAL: data.draw(ropes, "local")},
            classifier_activation=ACTIVATION, tie_word_embeddings=FLAG, **dict.fromkeys(flags, FLAG),
        )  # fmt: skip
