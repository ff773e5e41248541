"""Ministral 3 against transformers."""

from __future__ import annotations

from typing import Any

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, HEAD_DIM
from tests.parity.families.llamas import ALL, LlamaTests, draw_llama
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config

YARN = {
    "rope_type": "yarn", "rope_theta": 700.0, "factor": 4.0, "original_max_position_embeddings": 4,
    "beta_fast": 8.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.7,
}  # fmt: skip
PLAIN = {
    "rope_type": "default", "rope_theta": 500.0, "llama_4_scaling_beta": 0.3, "original_max_position_embeddings": 5,
}  # fmt: skip


def test_a_config_without_positions_is_that_of_8b() -> None:
    data = {"architectures": ["Ministral3ForCausalLM"], "model_type": "ministral3"}
    position: Any = spec_of_config(Config(data, "config.json"), name="tiny").position
    assert (position.theta, position.scaling.factor, position.scaling.attention_factor) == (1e6, 16.0, 1.0)
    assert (position.query_scaling.beta, position.query_scaling.length) == (0.1, 16384)


class TestMinistral3(LlamaTests):
    model_class = hf.Ministral3ForCausalLM
    configs = {
        "grouped": dict(GROUPED, head_dim=14, rms_norm_eps=1e-3, rope_parameters=YARN),
        "tied, a window": dict(
            MULTI_HEAD, head_dim=8, hidden_act="gelu_new", tie_word_embeddings=True, sliding_window=4,
            rope_parameters=PLAIN,
        ),
        "no growth": dict(MULTI_QUERY, head_dim=6, rope_parameters={**YARN, "llama_4_scaling_beta": 0.0}),
    }  # fmt: skip
    heads = ALL
    refusals = (
        ("hidden_act", "swiglu", "Did you mean 'silu'?"),
        ("rope_parameters", {"rope_type": "yarn", "factor": 2.0}, "llama_4_scaling_beta"),
        ("attention_bias", True, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        return draw_llama(data) | dict(
            head_dim=HEAD_DIM, rms_norm_eps=EPS, sliding_window=st.none() | st.integers(2, 9),
            rope_parameters={ **data.draw(st.sampled_from([YARN, PLAIN]), "rope"), "llama_4_scaling_beta": data.draw(st.sampled_from([0.0, 0.1, 2.0]), "beta"), "original_max_position_embeddings": data.draw(st.integers(2, 20), "original"), },
        )  # fmt: skip
