"""GLM-4 against transformers."""

from __future__ import annotations

from hypothesis import strategies as st
from transformers import Glm4Config, Glm4ForCausalLM, GlmConfig, GlmForCausalLM

from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import EPS, LINEAR, SPECIAL, classes, draw_llama, labels, rotation

HEADS = ("Model", "ForSequenceClassification", "ForTokenClassification")
CONFIGS = {
    "grouped": dict(
        vocab_size=61, hidden_size=60, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
        head_dim=16, intermediate_size=41, rms_norm_eps=1e-3, rope_parameters=rotation(500.0),
    ),
    "without biases, tied": dict(
        vocab_size=47, hidden_size=40, num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=5,
        head_dim=8, intermediate_size=50, attention_bias=False, hidden_act="gelu_new", tie_word_embeddings=True,
        rope_parameters={**LINEAR, "partial_rotary_factor": 1.0},
    ),
    "a quarter": dict(
        vocab_size=31, hidden_size=56, num_hidden_layers=1, num_attention_heads=7, num_key_value_heads=1,
        head_dim=8, intermediate_size=33, rope_parameters={**rotation(90.0), "partial_rotary_factor": 0.25},
    ),
}  # fmt: skip
REFUSALS = (
    ("hidden_act", "swiglu", "Did you mean 'silu'?"),
    ("rope_parameters", {"rope_type": "linar", "factor": 2.0}, "Did you mean 'linear'?"),
    ("mlp_bias", True, "unsupported fields"),
    ("sliding_window", 4, "unsupported fields"),
)


def config_of(config_class, **values):
    values["rope_parameters"] = dict(values["rope_parameters"])
    return config_class(**{**SPECIAL, "max_position_embeddings": 128, **values})


def draw_glm(data) -> dict:
    return {
        **draw_llama(data),
        "attention_bias": data.draw(st.booleans(), "attention_bias"),
        "head_dim": 4 * data.draw(st.integers(2, 6), "head_dim / 4"),
        "rms_norm_eps": data.draw(EPS, "eps"),
    }


class TestGlm(FamilyTests):
    model_class = GlmForCausalLM
    configs = CONFIGS
    others = [(each, labels(each)) for each in classes("Glm", *HEADS)]
    refusals = REFUSALS
    draw = staticmethod(draw_glm)

    @staticmethod
    def config(**values) -> GlmConfig:
        return config_of(GlmConfig, **values)


class TestGlm4(FamilyTests):
    model_class = Glm4ForCausalLM
    configs = CONFIGS
    others = [(each, labels(each)) for each in classes("Glm4", *HEADS)]
    refusals = REFUSALS
    draw = staticmethod(draw_glm)

    @staticmethod
    def config(**values) -> Glm4Config:
        return config_of(Glm4Config, **values)
