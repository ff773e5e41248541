"""The decoder of ModernBERT against transformers."""

from __future__ import annotations

import pytest
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import ACTIVATION, FLAG, HIDDEN, VOCAB
from tests.parity.families.encoder_tests import EPS
from tests.parity.families.encoders.test_modernbert import DEFAULT, FULL, LINEAR, LOCAL, TOKENS, YARN
from tests.parity.families.family import SPECIAL, FamilyTests
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config, ConfigError


def test_a_window_follows_from_that_of_the_encoder() -> None:
    data = TestModernBertDecoder.configured("every other").to_dict()
    del data["sliding_window"]
    blocks = spec_of_config(Config(data, "config.json"), name="tiny").decoder.layer_blocks()
    assert [block.attention.window for block in blocks] == [None, 3, None, 3]
    with pytest.raises(ConfigError, match="local_attention: must be 2 or more"):
        spec_of_config(Config({**data, "local_attention": 1}, "config.json"), name="tiny")


class TestModernBertDecoder(FamilyTests):
    model_class = hf.ModernBertDecoderForCausalLM
    defaults = {**SPECIAL, **TOKENS}
    configs = {
        "every other": dict(
            vocab_size=61, hidden_size=30, num_hidden_layers=4, num_attention_heads=3, intermediate_size=17,
            hidden_activation="gelu_new", norm_eps=1e-3, max_position_embeddings=64, local_attention=6,
            global_attn_every_n_layers=2, attention_bias=True, classifier_activation="relu",
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
    heads = ("Model", "ForSequenceClassification")
    of_others = ("stated types",)
    refusals = (
        ("hidden_activation", "gelu_nwe", "Did you mean 'gelu_new'"),
        ("layer_types", [FULL, "chunked_attention", LOCAL, FULL], "must have supported kinds only"),
        ("global_attn_every_n_layers", 0, "must be 1 or more"),
        ("rope_parameters", {FULL: {"rope_type": "yran"}}, "Did you mean 'yarn'"),
        ("sliding_window", 0, "must be 1 or more"),
        ("architectures", ["ModernBertDecoderForTokenClassification"], "must name a supported class"),
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
