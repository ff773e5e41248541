"""Cohere and Cohere 2 against transformers."""

from __future__ import annotations

import pytest
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, WINDOW
from tests.parity.families.llamas import LINEAR, YARN, LlamaTests, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError


class TestCohere(LlamaTests):
    model_class = hf.CohereForCausalLM
    configs = {
        "grouped, norms of heads": dict(
            GROUPED, layer_norm_eps=1e-3, use_qk_norm=True, logit_scale=0.3, rope_parameters=rotation(500.0),
        ),
        "biases, untied": dict(
            MULTI_HEAD, attention_bias=True, hidden_act="gelu_new", tie_word_embeddings=False, logit_scale=1.0,
            rope_parameters=LINEAR,
        ),
        "yarn": dict(MULTI_QUERY, rope_parameters=YARN),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("hidden_act", "swiglu", "Did you mean 'silu'?"),
        ("rope_parameters", {"rope_type": "linar", "factor": 2.0}, "Did you mean 'linear'?"),
        ("partial_rotary_factor", 0.5, "must be 1"),
        ("sliding_window", 4, "unsupported fields"),
    )

    draws = dict(
        layer_norm_eps=EPS, logit_scale=st.sampled_from([1.0, 0.0625, 0.8333]), use_qk_norm=FLAG, attention_bias=FLAG,
    )  # fmt: skip


FULL, SLIDING = "full_attention", "sliding_attention"


class TestCohere2(LlamaTests):
    model_class = hf.Cohere2ForCausalLM
    configs = {
        "every fourth": dict(
            GROUPED, num_hidden_layers=5, layer_norm_eps=1e-3, sliding_window=4, logit_scale=0.25,
            rope_parameters=rotation(500.0),
        ),
        "biases, untied": dict(
            MULTI_HEAD, num_hidden_layers=3, attention_bias=True, hidden_act="gelu_new", tie_word_embeddings=False,
            sliding_window=7, layer_types=[FULL, SLIDING, SLIDING], rope_parameters=LINEAR,
        ),
        "nothing rotates": dict(
            MULTI_QUERY, num_hidden_layers=2, layer_types=[FULL, FULL], rope_parameters=rotation(90.0),
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("hidden_act", "swiglu", "Did you mean 'silu'?"),
        ("layer_types", [FULL] * 4, "each of the 5 layers"),
        ("sliding_window", None, "must be a number"),
        ("use_qk_norm", True, "unsupported fields"),
    )
    drawn = {"length": 17}

    draws = dict(
        layer_norm_eps=EPS, logit_scale=st.sampled_from([1.0, 0.0625, 0.8333]), attention_bias=FLAG,
        sliding_window=WINDOW,
    )  # fmt: skip


def test_the_pattern_counts_where_no_list_says_which_layers_have_a_window():
    data = TestCohere2.config(**TestCohere2.configs["every fourth"]).to_dict()
    del data["layer_types"]
    spec = spec_of_config(Config({**data, "sliding_window_pattern": 2}, "config.json"), name="tiny")
    windows = [block.attention.window for block in spec.decoder.layer_blocks()]
    assert windows == [4, None, 4, None, 4]
    with pytest.raises(ConfigError, match="must be at least 1"):
        spec_of_config(Config({**data, "sliding_window_pattern": 0}, "config.json"), name="tiny")
