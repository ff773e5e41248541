"""Nemotron against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG
from tests.parity.families.llamas import ALL, LINEAR, LlamaTests, draw_llama, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY


class TestNemotron(LlamaTests):
    model_class = hf.NemotronForCausalLM
    configs = {
        "grouped": dict(GROUPED, head_dim=16, norm_eps=1e-3, rope_parameters=rotation(500.0)),
        "biases, tied": dict(
            MULTI_HEAD, attention_bias=True, mlp_bias=True, hidden_act="gelu_new", tie_word_embeddings=True,
            rope_parameters={**LINEAR, "partial_rotary_factor": 1.0},
        ),
        "a quarter": dict(
            MULTI_QUERY, hidden_size=56, rope_parameters={**rotation(90.0), "partial_rotary_factor": 0.25},
        ),
    }  # fmt: skip
    heads = ALL
    refusals = (
        ("hidden_act", "relu3", "Did you mean 'relu'?"),
        ("rope_parameters", {"rope_type": "linar", "factor": 2.0}, "Did you mean 'linear'?"),
        ("rms_norm_eps", 1e-6, "unsupported fields"),
        ("sliding_window", 4, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        return draw_llama(data) | dict(
            attention_bias=FLAG, mlp_bias=FLAG, head_dim=4 * data.draw(st.integers(2, 6), "head_dim / 4"),
            hidden_act=st.sampled_from(["relu2", "relu"]), norm_eps=EPS,
        )  # fmt: skip
