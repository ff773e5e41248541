"""Arcee against transformers."""

from __future__ import annotations

from hypothesis import strategies as st
from transformers import ArceeConfig, ArceeForCausalLM

from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import (
    ALL,
    EPS,
    LINEAR,
    SPECIAL,
    YARN,
    classes,
    draw_head_dim,
    draw_llama,
    labels,
    rotation,
)


class TestArcee(FamilyTests):
    model_class = ArceeForCausalLM
    configs = {
        "grouped": dict(
            vocab_size=61, hidden_size=60, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
            head_dim=14, intermediate_size=41, rms_norm_eps=1e-3, rope_parameters=rotation(500.0),
        ),
        "biases, tied": dict(
            vocab_size=47, hidden_size=40, num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=5,
            intermediate_size=50, attention_bias=True, mlp_bias=True, hidden_act="gelu_new",
            tie_word_embeddings=True, rope_parameters=LINEAR,
        ),
        "yarn": dict(
            vocab_size=31, hidden_size=28, num_hidden_layers=1, num_attention_heads=7, num_key_value_heads=1,
            intermediate_size=33, rope_parameters=YARN,
        ),
    }  # fmt: skip
    others = [(each, labels(each)) for each in classes("Arcee", *ALL)]
    refusals = (
        ("hidden_act", "relu3", "Did you mean 'relu'?"),
        ("partial_rotary_factor", 0.5, "must be 1"),
        ("sliding_window", 4, "unsupported fields"),
    )

    @staticmethod
    def config(**values) -> ArceeConfig:
        values["rope_parameters"] = dict(values["rope_parameters"])
        return ArceeConfig(**{**SPECIAL, "max_position_embeddings": 128, **values})

    @staticmethod
    def draw(data):
        return {
            **draw_llama(data),
            **{name: data.draw(st.booleans(), name) for name in ("attention_bias", "mlp_bias")},
            "hidden_act": data.draw(st.sampled_from(["relu2", "relu"]), "activation"),
            "head_dim": draw_head_dim(data),
            "rms_norm_eps": data.draw(EPS, "eps"),
        }
