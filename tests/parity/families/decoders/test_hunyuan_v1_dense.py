"""Hunyuan dense against transformers."""

from __future__ import annotations

from hypothesis import strategies as st
from transformers import HunYuanDenseV1Config, HunYuanDenseV1ForCausalLM

from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import (
    EPS,
    SPECIAL,
    YARN,
    classes,
    draw_head_dim,
    draw_llama,
    labels,
    rotation,
)

ALPHA = {
    "rope_type": "dynamic", "rope_theta": 1000.0, "alpha": 50.0, "factor": 1.0, "beta_fast": 32, "beta_slow": 1,
    "mscale": 1.0, "mscale_all_dim": 1.0,
}  # fmt: skip


class TestHunyuan(FamilyTests):
    model_class = HunYuanDenseV1ForCausalLM
    configs = {
        "stretched": dict(
            vocab_size=61, hidden_size=60, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
            head_dim=14, intermediate_size=41, rms_norm_eps=1e-3, rope_parameters=ALPHA,
        ),
        "biases, tied": dict(
            vocab_size=47, hidden_size=40, num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=5,
            head_dim=8, intermediate_size=50, attention_bias=True, hidden_act="gelu_new",
            tie_word_embeddings=True, rope_parameters=rotation(500.0),
        ),
        "yarn": dict(
            vocab_size=31, hidden_size=28, num_hidden_layers=1, num_attention_heads=7, num_key_value_heads=1,
            head_dim=4, intermediate_size=33, rope_parameters=YARN,
        ),
    }  # fmt: skip
    others = [
        (each, labels(each)) for each in classes("HunYuanDenseV1", "Model", "ForSequenceClassification")
    ]
    refusals = (
        ("hidden_act", "swiglu", "Did you mean 'silu'?"),
        ("rope_parameters", {**ALPHA, "rope_type": "dynamc"}, "Did you mean 'dynamic'?"),
        ("rope_parameters", {**ALPHA, "beta": 1.0}, "unsupported fields"),
        ("sliding_window", 4, "unsupported fields"),
    )

    @staticmethod
    def config(**values) -> HunYuanDenseV1Config:
        values["rope_parameters"] = dict(values["rope_parameters"])
        return HunYuanDenseV1Config(**{**SPECIAL, "max_position_embeddings": 128, **values})

    @staticmethod
    def draw(data):
        values = draw_llama(data)
        stretched = data.draw(st.booleans(), "stretched")
        return {
            **values,
            "attention_bias": data.draw(st.booleans(), "attention_bias"),
            "head_dim": draw_head_dim(data),
            "rms_norm_eps": data.draw(EPS, "eps"),
            "rope_parameters": ALPHA if stretched else values["rope_parameters"],
        }
