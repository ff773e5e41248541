"""Granite, Granite MoE and the hybrids of Granite 4 against transformers.

The reference cannot run a hybrid without attention.
"""

from __future__ import annotations

import pytest
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG
from tests.parity.families.llamas import LINEAR, YARN, LlamaTests, draw_llama, rotation
from tests.parity.families.mixers import MixerTests
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY
from zoo.configs.exporting import write_config
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config

CONFIGS = {
    "grouped": dict(
        GROUPED, rms_norm_eps=1e-3, embedding_multiplier=3.5, residual_multiplier=0.22, attention_multiplier=0.25,
        logits_scaling=6.0, rope_parameters=rotation(500.0),
    ),
    "biases, tied": dict(
        MULTI_HEAD, intermediate_size=9, attention_bias=True, hidden_act="gelu", tie_word_embeddings=True,
        residual_multiplier=1.7, logits_scaling=0.3, attention_multiplier=0.5, rope_parameters=YARN,
    ),
    "one factor each": dict(MULTI_QUERY, intermediate_size=13, rope_parameters=LINEAR),
}  # fmt: skip
MULTIPLIERS = ("embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling")
REFUSALS = (
    ("hidden_act", "silo", "Did you mean 'silu'?"),
    ("logits_scaling", 0, "must not be 0"),
    ("sliding_window", 4, "unsupported fields"),
)


def draw_granite(data) -> dict:
    factors = st.sampled_from([1.0, 0.22, 0.1, 1.5])
    return draw_llama(data) | dict.fromkeys(MULTIPLIERS, factors) | dict(
        attention_bias=FLAG, rms_norm_eps=EPS,
    )  # fmt: skip


@pytest.mark.parametrize("scaling", [3.0, 6.0, 7.0, 49.0, 0.3])
def test_inverse_factors_are_written_as_they_were_read(scaling):
    config = TestGranite.configured("grouped", logits_scaling=scaling)
    spec = spec_of_config(Config(config.to_dict(), "config.json"), name="tiny")
    assert write_config(spec, "granite")["logits_scaling"] == scaling


class TestGranite(LlamaTests):
    model_class = hf.GraniteForCausalLM
    configs = {**CONFIGS, "biases, tied": {**CONFIGS["biases, tied"], "mlp_bias": True}}
    heads = ("Model",)
    refusals = REFUSALS

    @staticmethod
    def draw(data):
        return draw_granite(data) | dict(mlp_bias=FLAG)


EXPERTS = {
    "grouped": dict(num_local_experts=5, num_experts_per_tok=2),
    "biases, tied": dict(num_local_experts=3, num_experts_per_tok=3),
    "one factor each": dict(num_local_experts=4, num_experts_per_tok=3),
}


class TestGraniteMoe(LlamaTests):
    model_class = hf.GraniteMoeForCausalLM
    configs = {name: {**values, **EXPERTS[name]} for name, values in CONFIGS.items()}
    heads = ("Model",)
    refusals = (*REFUSALS, ("shared_intermediate_size", 8, "unsupported fields"))

    @staticmethod
    def draw(data):
        experts = data.draw(st.integers(1, 7), "experts")
        top_k = data.draw(st.integers(1, experts), "top_k")
        return draw_granite(data) | dict(num_local_experts=experts, num_experts_per_tok=top_k)


class TestGraniteMoeShared(LlamaTests):
    model_class = hf.GraniteMoeSharedForCausalLM
    configs = {
        "grouped": {**TestGraniteMoe.configs["grouped"], "shared_intermediate_size": 23},
        "without, tied": {**TestGraniteMoe.configs["biases, tied"], "shared_intermediate_size": 0},
    }
    heads = ("Model",)
    refusals = REFUSALS

    @staticmethod
    def draw(data):
        return TestGraniteMoe.draw(data) | dict(shared_intermediate_size=st.integers(0, 20))


MULTIPLIED = dict(
    embedding_multiplier=3.5, residual_multiplier=0.22, attention_multiplier=0.25, logits_scaling=6.0
)


class TestGraniteHybrid(MixerTests):
    model_class = hf.GraniteMoeHybridForCausalLM
    defaults = {**LlamaTests.defaults, "rope_parameters": rotation(10000.0)}
    configs = {
        "dense": dict(
            vocab_size=61, hidden_size=48, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
            num_local_experts=0, shared_intermediate_size=41, rms_norm_eps=1e-3, mamba_n_heads=4, mamba_d_state=6,
            mamba_n_groups=2, layer_types=["mamba", "attention", "mamba"], **MULTIPLIED,
        ),
        "mixtures, tied": dict(
            MULTI_HEAD, num_local_experts=5, num_experts_per_tok=2, intermediate_size=13, shared_intermediate_size=21,
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
    heads = ("Model",)
    refusals = (
        *REFUSALS,
        ("layer_types", ["mamba"], "must have an entry for each of the 3 layers"),
        ("layer_types", ["mamba", "atention", "mamba"], "must have supported kinds only"),
        ("mamba_expand", 3, "times hidden_size must be the width of 4 heads of 24, 96, not 144"),
        ("position_embedding_type", "alibi", "is not supported"),
    )

    @staticmethod
    def draw(data):
        values = draw_granite(data)
        kinds = st.sampled_from(["mamba", "attention"])
        layers = ["attention", *data.draw(st.lists(kinds, max_size=3), "layers")]
        experts = data.draw(st.sampled_from([0, 2, 5]), "experts")
        return values | dict(
            num_hidden_layers=len(layers), layer_types=layers, num_local_experts=experts,
            num_experts_per_tok=data.draw(st.integers(1, experts), "top_k") if experts else 2,
            shared_intermediate_size=st.integers(1, 40), mamba_n_heads=st.sampled_from([1, 2, 4]),
            mamba_d_state=st.integers(1, 9), position_embedding_type=st.sampled_from([None, "rope"]),
        )  # fmt: skip
