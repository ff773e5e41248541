"""nanochat against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG
from tests.parity.families.llamas import LlamaTests, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD


class TestNanoChat(LlamaTests):
    model_class = hf.NanoChatForCausalLM
    configs = {
        "grouped": dict(GROUPED, rms_norm_eps=1e-3, rope_parameters=rotation(500.0)),
        "biases, no cap": dict(
            MULTI_HEAD, attention_bias=True, final_logit_softcapping=None, tie_word_embeddings=True, hidden_act="gelu",
            rope_parameters=rotation(500.0),
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (("hidden_act", "silo", "Did you mean 'silu'?"),)
    draws = dict(rms_norm_eps=EPS, attention_bias=FLAG, final_logit_softcapping=st.sampled_from([None, 15.0]))
