"""nanochat against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG
from tests.parity.families.llamas import LlamaTests, rotation


class TestNanoChat(LlamaTests):
    model_class = hf.NanoChatForCausalLM
    configs = {
        "grouped": dict(
            vocab_size=61, hidden_size=60, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
            intermediate_size=41, rms_norm_eps=1e-3, rope_parameters=rotation(500.0),
        ),
        "biases, no cap": dict(
            vocab_size=47, hidden_size=40, num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=5,
            intermediate_size=50, attention_bias=True, final_logit_softcapping=None, tie_word_embeddings=True,
            hidden_act="gelu", rope_parameters=rotation(500.0),
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (("hidden_act", "silo", "Did you mean 'silu'?"),)
    draws = dict(rms_norm_eps=EPS, attention_bias=FLAG, final_logit_softcapping=st.sampled_from([None, 15.0]))
