"""OpenAI Privacy Filter against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.decoders import test_gpt_oss
from tests.parity.families.draws import EPS, HEAD_DIM, HIDDEN, LAYERS, VOCAB
from tests.parity.families.encoder_tests import EncoderTests
from tests.parity.families.llamas import YARN, rotation


class TestOpenAIPrivacyFilter(EncoderTests):
    model_class = hf.OpenAIPrivacyFilterForTokenClassification
    defaults = {"pad_token_id": 0, "eos_token_id": 0, "num_labels": 5}
    configs = {
        "two of five": test_gpt_oss.TestGptOss.configs["two of five"],
        "without biases": dict(
            vocab_size=47, hidden_size=33, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=3,
            head_dim=8, intermediate_size=9, max_position_embeddings=128, num_local_experts=3, num_experts_per_tok=3,
            sliding_window=3, attention_bias=False, rope_parameters=rotation(90.0),
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (("swiglu_alpha", 1.5, "must be 1.702"),)

    @staticmethod
    def draw(data):
        groups, experts = data.draw(st.integers(1, 3), "groups"), data.draw(st.integers(2, 6), "experts")
        return dict(
            vocab_size=VOCAB, hidden_size=st.integers(8, 40), num_hidden_layers=LAYERS, num_key_value_heads=groups,
            num_attention_heads=groups * data.draw(st.integers(1, 3), "heads"), head_dim=HEAD_DIM,
            intermediate_size=HIDDEN, rms_norm_eps=EPS, max_position_embeddings=128, num_local_experts=experts,
            num_experts_per_tok=data.draw(st.integers(1, experts - 1), "top_k"), sliding_window=st.integers(1, 8),
            rope_parameters=st.sampled_from([YARN, rotation(50.0)]),
        )  # fmt: skip
