"""Arcee against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, HEAD_DIM
from tests.parity.families.llamas import ALL, LINEAR, YARN, LlamaTests, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY


class TestArcee(LlamaTests):
    model_class = hf.ArceeForCausalLM
    configs = {
        "grouped": dict(GROUPED, head_dim=14, rms_norm_eps=1e-3, rope_parameters=rotation(500.0)),
        "biases, tied": dict(
            MULTI_HEAD, attention_bias=True, mlp_bias=True, hidden_act="gelu_new", tie_word_embeddings=True,
            rope_parameters=LINEAR,
        ),
        "yarn": dict(MULTI_QUERY, rope_parameters=YARN),
    }  # fmt: skip
    heads = ALL
    refusals = (
        ("hidden_act", "relu3", "Did you mean 'relu'?"),
        ("partial_rotary_factor", 0.5, "must be 1"),
        ("sliding_window", 4, "unsupported fields"),
    )

    draws = dict(
        attention_bias=FLAG, mlp_bias=FLAG, hidden_act=st.sampled_from(["relu2", "relu"]), head_dim=HEAD_DIM,
        rms_norm_eps=EPS,
    )  # fmt: skip
