"""Granite, Granite MoE and the hybrids of Granite 4 against transformers.

The reference cannot run a hybrid without attention.
"""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from transformers import (
    GraniteConfig,
    GraniteForCausalLM,
    GraniteModel,
    GraniteMoeConfig,
    GraniteMoeForCausalLM,
    GraniteMoeHybridConfig,
    GraniteMoeHybridForCausalLM,
    GraniteMoeHybridModel,
    GraniteMoeModel,
)

from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import EPS, LINEAR, SPECIAL, YARN, draw_llama, rotation
from tests.parity.families.mixers import MixerTests
from tests.parity.families.mixtures import check
from zoo.configs.exporting import write_config
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config

CONFIGS = {
    "grouped": dict(
        vocab_size=61, hidden_size=60, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
        intermediate_size=41, rms_norm_eps=1e-3, embedding_multiplier=3.5, residual_multiplier=0.22,
        attention_multiplier=0.25, logits_scaling=6.0, rope_parameters=rotation(500.0),
    ),
    "biases, tied": dict(
        vocab_size=47, hidden_size=40, num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=5,
        intermediate_size=9, attention_bias=True, hidden_act="gelu", tie_word_embeddings=True,
        residual_multiplier=1.7, logits_scaling=0.3, attention_multiplier=0.5, rope_parameters=YARN,
    ),
    "one factor each": dict(
        vocab_size=31, hidden_size=28, num_hidden_layers=1, num_attention_heads=7, num_key_value_heads=1,
        intermediate_size=13, rope_parameters=LINEAR,
    ),
}  # fmt: skip
MULTIPLIERS = ("embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling")
REFUSALS = (
    ("hidden_act", "silo", "Did you mean 'silu'?"),
    ("logits_scaling", 0, "must not be 0"),
    ("sliding_window", 4, "unsupported fields"),
)


def config_of(config_class, **values):
    values["rope_parameters"] = dict(values["rope_parameters"])
    return config_class(**{**SPECIAL, "max_position_embeddings": 128, **values})


def draw_granite(data) -> dict:
    factors = st.sampled_from([1.0, 0.22, 0.1, 1.5])
    return {
        **draw_llama(data),
        **{name: data.draw(factors, name) for name in MULTIPLIERS},
        "attention_bias": data.draw(st.booleans(), "attention_bias"),
        "rms_norm_eps": data.draw(EPS, "eps"),
    }


@pytest.mark.parametrize("scaling", [3.0, 6.0, 7.0, 49.0, 0.3])
def test_inverse_factors_are_written_as_they_were_read(scaling):
    config = config_of(GraniteConfig, **{**CONFIGS["grouped"], "logits_scaling": scaling})
    spec = spec_of_config(Config(config.to_dict(), "config.json"), name="tiny")
    assert write_config(spec, "granite")["logits_scaling"] == scaling


class TestGranite(FamilyTests):
    model_class = GraniteForCausalLM
    configs = {**CONFIGS, "biases, tied": {**CONFIGS["biases, tied"], "mlp_bias": True}}
    others = [(GraniteModel, {})]
    refusals = REFUSALS

    @staticmethod
    def config(**values) -> GraniteConfig:
        return config_of(GraniteConfig, **values)

    @staticmethod
    def draw(data):
        return {**draw_granite(data), "mlp_bias": data.draw(st.booleans(), "mlp_bias")}


EXPERTS = {
    "grouped": dict(num_local_experts=5, num_experts_per_tok=2),
    "biases, tied": dict(num_local_experts=3, num_experts_per_tok=3),
    "one factor each": dict(num_local_experts=4, num_experts_per_tok=3),
}


class TestGraniteMoe(FamilyTests):
    model_class = GraniteMoeForCausalLM
    configs = {name: {**values, **EXPERTS[name]} for name, values in CONFIGS.items()}
    check = staticmethod(check)
    others = [(GraniteMoeModel, {})]
    refusals = (*REFUSALS, ("shared_intermediate_size", 8, "unsupported fields"))

    @staticmethod
    def config(**values) -> GraniteMoeConfig:
        return config_of(GraniteMoeConfig, **values)

    @staticmethod
    def draw(data):
        experts = data.draw(st.integers(1, 7), "experts")
        top_k = data.draw(st.integers(1, experts), "top_k")
        return {**draw_granite(data), "num_local_experts": experts, "num_experts_per_tok": top_k}


MULTIPLIED = dict(
    embedding_multiplier=3.5, residual_multiplier=0.22, attention_multiplier=0.25, logits_scaling=6.0
)


class TestGraniteHybrid(MixerTests):
    model_class = GraniteMoeHybridForCausalLM
    configs = {
        "dense": dict(
            vocab_size=61, hidden_size=48, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
            num_local_experts=0, shared_intermediate_size=41, rms_norm_eps=1e-3, mamba_n_heads=4, mamba_d_state=6,
            mamba_n_groups=2, layer_types=["mamba", "attention", "mamba"], **MULTIPLIED,
        ),
        "mixtures, tied": dict(
            vocab_size=47, hidden_size=40, num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=5,
            num_local_experts=5, num_experts_per_tok=2, intermediate_size=13, shared_intermediate_size=21,
            attention_bias=True, mamba_n_heads=10, mamba_d_state=5, mamba_expand=1, mamba_d_conv=3,
            mamba_conv_bias=False, layer_types=["attention", "mamba"], tie_word_embeddings=True,
            position_embedding_type="rope", rope_parameters=LINEAR,
        ),
        "attention alone": dict(
            vocab_size=31, hidden_size=28, num_hidden_layers=2, num_attention_heads=7, num_key_value_heads=1,
            num_local_experts=0, shared_intermediate_size=33, mamba_n_heads=4, layer_types=["attention"] * 2,
            position_embedding_type="rope", rope_parameters=rotation(500.0),
        ),
    }  # fmt: skip
    others = [(GraniteMoeHybridModel, {})]
    refusals = (
        *REFUSALS,
        ("layer_types", ["mamba"], "must have an entry for each of the 3 layers"),
        ("layer_types", ["mamba", "atention", "mamba"], "must have supported kinds only"),
        ("mamba_expand", 3, "times hidden_size must be the width of 4 heads of 24, 96, not 144"),
        ("position_embedding_type", "alibi", "is not supported"),
    )

    @staticmethod
    def config(**values) -> GraniteMoeHybridConfig:
        rope = {"rope_parameters": dict(values.pop("rope_parameters", rotation(10000.0)))}
        return GraniteMoeHybridConfig(**{**SPECIAL, "max_position_embeddings": 128, **rope, **values})

    @staticmethod
    def draw(data):
        values = draw_granite(data)
        kinds = st.sampled_from(["mamba", "attention"])
        layers = ["attention", *data.draw(st.lists(kinds, max_size=3), "layers")]
        experts = data.draw(st.sampled_from([0, 2, 5]), "experts")
        return {
            **values,
            "num_hidden_layers": len(layers),
            "layer_types": layers,
            "num_local_experts": experts,
            "num_experts_per_tok": data.draw(st.integers(1, experts), "top_k") if experts else 2,
            "shared_intermediate_size": data.draw(st.integers(1, 40), "shared"),
            "mamba_n_heads": data.draw(st.sampled_from([1, 2, 4]), "heads"),
            "mamba_d_state": data.draw(st.integers(1, 9), "state"),
            "position_embedding_type": data.draw(st.sampled_from([None, "rope"]), "position"),
        }
