"""Phi-3.5-MoE against transformers."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from transformers import (
    PhimoeConfig,
    PhimoeForCausalLM,
    PhimoeForSequenceClassification,
    PhimoeModel,
)

from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import EPS, SPECIAL, draw_llama, labels, rotation
from tests.parity.families.mixtures import check
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config, ConfigError


def longrope(pairs: int, **more) -> dict:
    """The scaling that the published models have."""
    return {
        "rope_type": "longrope",
        "rope_theta": 700.0,
        "short_factor": [1.0 + 0.1 * i for i in range(pairs)],
        "long_factor": [2.0 + i for i in range(pairs)],
        "short_mscale": 1.2,
        "long_mscale": 1.2,
        "original_max_position_embeddings": 64,
        **more,
    }


class TestPhimoe(FamilyTests):
    model_class = PhimoeForCausalLM
    configs = {
        "biases, longrope": dict(
            vocab_size=61, hidden_size=60, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
            intermediate_size=41, rms_norm_eps=1e-3, num_local_experts=5, attention_bias=True, lm_head_bias=True,
            rope_parameters=longrope(5),
        ),
        "window, tied": dict(
            vocab_size=47, hidden_size=40, num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=5,
            intermediate_size=9, num_local_experts=2, hidden_act="gelu", tie_word_embeddings=True,
            sliding_window=4, rope_parameters=rotation(500.0),
        ),
        "many experts": dict(
            vocab_size=31, hidden_size=28, num_hidden_layers=1, num_attention_heads=7, num_key_value_heads=1,
            intermediate_size=13, num_local_experts=40, rope_parameters=longrope(2),
        ),
    }  # fmt: skip
    check = staticmethod(check)
    others = [(PhimoeModel, {}), (PhimoeForSequenceClassification, labels(PhimoeForSequenceClassification))]
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("num_experts_per_tok", 3, "the reference selects two experts"),
        ("router_jitter_noise", 0.1, "experts are compared within a gap of 2 %"),
        ("rope_parameters", {"rope_type": "linear", "factor": 2.0}, "Choose from: default, longrope"),
        ("n_shared_experts", 1, "unsupported fields"),
    )
    drawn = {"length": 17}

    @staticmethod
    def config(**values) -> PhimoeConfig:
        values["rope_parameters"] = dict(values["rope_parameters"])
        return PhimoeConfig(**{**SPECIAL, "max_position_embeddings": 128, **values})

    @staticmethod
    def draw(data):
        common = draw_llama(data)
        pairs = common["hidden_size"] // common["num_attention_heads"] // 2
        scalings = st.sampled_from([rotation(1000.0), longrope(pairs)])
        return {
            **common,
            "rope_parameters": data.draw(scalings, "scaling"),
            "num_local_experts": data.draw(st.integers(2, 9), "experts"),
            "attention_bias": data.draw(st.booleans(), "attention_bias"),
            "lm_head_bias": data.draw(st.booleans(), "lm_head_bias"),
            "sliding_window": data.draw(st.none() | st.integers(2, 15), "window"),
            "rms_norm_eps": data.draw(EPS, "eps"),
        }


@pytest.mark.parametrize(
    ("mscales", "said"),
    [
        ({"long_mscale": 1.3}, "long_mscale: must equal short_mscale"),
        ({"short_mscale": None}, "short_mscale: is required"),
    ],
)
def test_amplitudes_that_one_number_cannot_state_are_refused(mscales, said):
    data = TestPhimoe.config(**TestPhimoe.configs["biases, longrope"]).to_dict()
    with pytest.raises(ConfigError, match=said):
        spec_of_config(
            Config({**data, "rope_parameters": longrope(5, **mscales)}, "config.json"), name="tiny"
        )
