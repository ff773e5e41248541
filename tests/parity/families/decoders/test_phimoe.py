"""Phi-3.5-MoE against transformers."""

from __future__ import annotations

import pytest
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, WINDOW
from tests.parity.families.llamas import LlamaTests, draw_llama, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError


def longrope(pairs: int, **more) -> dict:
    """The scaling that the published models have."""
    return {
        "rope_type": "longrope", "rope_theta": 700.0,
        "short_factor": [1.0 + 0.1 * i for i in range(pairs)],
        "long_factor": [2.0 + i for i in range(pairs)],
        "short_mscale": 1.2, "long_mscale": 1.2, "original_max_position_embeddings": 64, **more,
    }  # fmt: skip


class TestPhimoe(LlamaTests):
    model_class = hf.PhimoeForCausalLM
    configs = {
        "biases, longrope": dict(
            GROUPED, rms_norm_eps=1e-3, num_local_experts=5, attention_bias=True, lm_head_bias=True,
            rope_parameters=longrope(5),
        ),
        "window, tied": dict(
            MULTI_HEAD, intermediate_size=9, num_local_experts=2, hidden_act="gelu", tie_word_embeddings=True,
            sliding_window=4, rope_parameters=rotation(500.0),
        ),
        "many experts": dict(MULTI_QUERY, intermediate_size=13, num_local_experts=40, rope_parameters=longrope(2)),
    }  # fmt: skip
    heads = ("Model", "ForSequenceClassification", "ForSequenceClassification")
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("num_experts_per_tok", 3, "the reference selects two experts"),
        ("router_jitter_noise", 0.1, "experts are compared within a gap of 2 %"),
        ("rope_parameters", {"rope_type": "linear", "factor": 2.0}, "Choose from: default, longrope"),
        ("n_shared_experts", 1, "unsupported fields"),
    )
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        common = draw_llama(data)
        pairs = common["hidden_size"] // common["num_attention_heads"] // 2
        scalings = st.sampled_from([rotation(1000.0), longrope(pairs)])
        return common | dict(
            rope_parameters=scalings, num_local_experts=st.integers(2, 9), attention_bias=FLAG, lm_head_bias=FLAG,
            sliding_window=st.none() | WINDOW, rms_norm_eps=EPS,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("mscales", "said"),
    [
        ({"long_mscale": 1.3}, "long_mscale: must equal short_mscale"),
        ({"short_mscale": None}, "short_mscale: is required"),
    ],
)
def test_amplitudes_that_one_number_cannot_state_are_refused(mscales, said):
    data = TestPhimoe.configured("biases, longrope").to_dict()
    with pytest.raises(ConfigError, match=said):
        spec_of_config(
            Config({**data, "rope_parameters": longrope(5, **mscales)}, "config.json"), name="tiny"
        )
