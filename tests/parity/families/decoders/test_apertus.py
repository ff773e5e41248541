"""Apertus against transformers."""

from __future__ import annotations

from typing import Any

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG
from tests.parity.families.family import SPECIAL
from tests.parity.families.llamas import LLAMA3, YARN, LlamaTests, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config


def test_a_config_without_positions_is_scaled() -> None:
    data = {"architectures": ["ApertusForCausalLM"], "model_type": "apertus"}
    position: Any = spec_of_config(Config(data, "config.json"), name="tiny").position
    reference = hf.ApertusConfig().rope_parameters
    assert (position.theta, position.scaling.kind) == (reference["rope_theta"], reference["rope_type"])
    assert position.scaling.factor == reference["factor"]


class TestApertus(LlamaTests):
    model_class = hf.ApertusForCausalLM
    defaults = {**SPECIAL, "max_position_embeddings": 128, "dtype": "float32"}
    configs = {
        "grouped": dict(GROUPED, rms_norm_eps=1e-3, rope_parameters=LLAMA3),
        "biases, tied, another activation": dict(
            MULTI_HEAD, attention_bias=True, hidden_act="gelu_new", tie_word_embeddings=True,
            rope_parameters=rotation(500.0),
        ),
        "yarn": dict(MULTI_QUERY, head_dim=6, rope_parameters=YARN),
    }  # fmt: skip
    heads = ("Model", "ForTokenClassification")
    refusals = (
        ("hidden_act", "xelu", "Did you mean 'xielu'?"),
        ("partial_rotary_factor", 0.5, "must be 1"),
        ("sliding_window", 4, "unsupported fields"),
        ("architectures", ["ApertusForSequenceClassification"], "must name a supported class"),
    )

    draws = dict(attention_bias=FLAG, hidden_act=st.sampled_from(["xielu", "relu2"]), rms_norm_eps=EPS)
