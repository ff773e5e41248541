"""MiniMax-01 against transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers as hf
from hypothesis import strategies as st

from specs.language.load import load
from tests.parity.families.draws import EPS, HEAD_DIM
from tests.parity.families.family import SPECIAL
from tests.parity.families.llamas import ALL, LINEAR, YARN, draw_llama, rotation
from tests.parity.families.mixers import MixerTests
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config

FULL, LIGHTNING = "full_attention", "linear_attention"
FACTORS = [
    f"{branch}_{name}_factor" for branch in ("full_attn", "linear_attn", "mlp") for name in ("alpha", "beta")
]


class TestMiniMax(MixerTests):
    model_class = hf.MiniMaxForCausalLM
    defaults = {**SPECIAL, "max_position_embeddings": 128}
    configs = {
        "six factors": dict(
            vocab_size=61, hidden_size=36, num_hidden_layers=4, num_attention_heads=6, num_key_value_heads=2, head_dim=10,
            intermediate_size=41, rms_norm_eps=1e-3, num_local_experts=5, num_experts_per_tok=2,
            layer_types=[LIGHTNING, LIGHTNING, FULL, LIGHTNING], rope_parameters=rotation(500.0),
            full_attn_alpha_factor=1.6, full_attn_beta_factor=0.7, linear_attn_alpha_factor=0.8,
            linear_attn_beta_factor=1.3, mlp_alpha_factor=1.9, mlp_beta_factor=0.6,
        ),
        "window, tied": dict(
            vocab_size=47, hidden_size=40, num_hidden_layers=3, num_attention_heads=5, num_key_value_heads=5,
            intermediate_size=9, num_local_experts=3, num_experts_per_tok=3, hidden_act="gelu", sliding_window=4,
            head_dim=8, tie_word_embeddings=True, mlp_alpha_factor=2, rope_parameters=YARN,
        ),
        "attention alone": dict(
            vocab_size=31, hidden_size=28, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
            intermediate_size=13, num_local_experts=4, num_experts_per_tok=2, layer_types=[FULL], rope_parameters=LINEAR,
        ),
    }  # fmt: skip
    heads = ALL
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("layer_types", [LIGHTNING], "an entry for each of the 4 layers"),
        ("postnorm", False, "the reference begins residuals after the norm"),
        ("shared_intermediate_size", 64, "the reference has no shared expert"),
        ("attention_bias", True, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        values, experts = draw_llama(data), data.draw(st.integers(1, 6), "experts")
        layers = values["num_hidden_layers"]
        kinds = st.lists(st.sampled_from([FULL, LIGHTNING]), min_size=layers, max_size=layers)
        return values | dict(
            head_dim=HEAD_DIM, layer_types=kinds.filter(lambda kinds: FULL in kinds), num_local_experts=experts,
            num_experts_per_tok=st.integers(1, experts), sliding_window=st.sampled_from([None, 3]), rms_norm_eps=EPS,
            **dict.fromkeys(FACTORS, st.sampled_from([1, 0.5, 1.75])),
        )  # fmt: skip


def test_the_rotated_part_that_published_configs_state_is_read_and_not_written():
    """The reference rotates whole heads, whatever ``rotary_dim`` is; the published model was trained with half."""
    data = {**TestMiniMax.configured("six factors").to_dict(), "rotary_dim": 4}
    spec = spec_of_config(Config(data, "config.json"), name="tiny")
    position: Any = spec.position
    assert position.dimensions == 4
    with pytest.raises(NoFamilyError, match="a rotated part of each head: the reference rotates whole heads"):
        write_config(spec, "minimax")


def test_the_reference_has_as_many_parameters_as_the_preset():
    """456 billion; without the two tables, a token passes 45.9 billion, as published."""
    preset: Any = load("minimax-text-01")
    config = write_config(load("minimax-text-01", ["position.dimensions=null"]), "minimax")
    with torch.device("meta"):
        model = hf.MiniMaxForCausalLM(hf.MiniMaxConfig.from_dict(config))
    assert sum(each.numel() for each in model.parameters()) == preset.expect.parameters
    tables = 2 * preset.vocab_size * preset.d_model
    assert round((preset.expect.active_parameters - tables) / 1e9, 1) == 45.9
