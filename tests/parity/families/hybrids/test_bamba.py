"""Bamba against transformers."""

from __future__ import annotations

import pytest
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG
from tests.parity.families.family import SPECIAL
from tests.parity.families.llamas import LINEAR, YARN, draw_llama, rotation
from tests.parity.families.mixers import MixerTests, draw_mamba2
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError


class TestBamba(MixerTests):
    model_class = hf.BambaForCausalLM
    defaults = {**SPECIAL, "max_position_embeddings": 128}
    configs = {
        "attention in the middle": dict(
            GROUPED, hidden_size=48, rms_norm_eps=1e-3, attn_layer_indices=[1], mamba_n_heads=4, mamba_d_state=6,
            mamba_n_groups=2, rope_parameters=rotation(500.0),
        ),
        "biases, tied": dict(
            MULTI_HEAD, attn_layer_indices=[0], attention_bias=True, mlp_bias=True, mamba_n_heads=10, mamba_d_state=5,
            mamba_expand=1, mamba_d_conv=3, mamba_conv_bias=False, hidden_act="gelu", tie_word_embeddings=True,
            rope_parameters=LINEAR,
        ),
        "no mixer": dict(MULTI_QUERY, attn_layer_indices=[0], mamba_n_heads=4, rope_parameters=YARN),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("mamba_expand", 3, "times hidden_size must be the width of 4 heads of 24, 96, not 144"),
        ("attn_layer_indices", ["one"], "must be a list of layers by number"),
        ("sliding_window", 4, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        values, mixer = draw_llama(data), draw_mamba2(data)
        layers = values["num_hidden_layers"]
        values["hidden_size"] *= 2  # half of a head rotates, which must be an even number
        del mixer["hidden_size"]
        return values | mixer | dict(
            mamba_n_groups=1, mamba_n_heads=2,
            attn_layer_indices=st.lists(st.integers(0, layers - 1), unique=True, min_size=1), attention_bias=FLAG,
            mlp_bias=FLAG, rms_norm_eps=EPS,
        )  # fmt: skip


def test_the_width_of_heads_follows_from_their_number() -> None:
    data = TestBamba.configured("attention in the middle").to_dict()
    assert data["mamba_d_head"] == 24
    stated = spec_of_config(Config(data, "config.json"), name="tiny")
    assert spec_of_config(Config({**data, "mamba_d_head": "auto"}, "config.json"), name="tiny") == stated
    uneven = Config({**data, "mamba_d_head": "auto", "mamba_n_heads": 7}, "config.json")
    with pytest.raises(ConfigError, match="mamba_n_heads: must divide the width of the mixer, which is 96"):
        spec_of_config(uneven, name="tiny")
