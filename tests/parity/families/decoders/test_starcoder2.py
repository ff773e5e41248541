"""StarCoder2 against transformers."""

from __future__ import annotations

from hypothesis import strategies as st
from transformers import Starcoder2Config, Starcoder2ForCausalLM

from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import DYNAMIC, EPS, SPECIAL, YARN, classes, draw_llama, labels, rotation


class TestStarcoder2(FamilyTests):
    model_class = Starcoder2ForCausalLM
    configs = {
        "grouped, windows": dict(
            vocab_size=61, hidden_size=60, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
            intermediate_size=41, norm_epsilon=1e-3, sliding_window=5, residual_dropout=0.1,
            embedding_dropout=0.2, attention_dropout=0.3, rope_parameters=rotation(500.0),
        ),
        "without biases, untied": dict(
            vocab_size=47, hidden_size=40, num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=5,
            intermediate_size=50, use_bias=False, hidden_act="relu", tie_word_embeddings=False,
            rope_parameters=DYNAMIC,
        ),
        "yarn": dict(
            vocab_size=31, hidden_size=28, num_hidden_layers=1, num_attention_heads=7, num_key_value_heads=1,
            head_dim=10, intermediate_size=33, rope_parameters=YARN,
        ),
    }  # fmt: skip
    others = [
        (each, labels(each))
        for each in classes("Starcoder2", "Model", "ForSequenceClassification", "ForTokenClassification")
    ]
    refusals = (
        ("hidden_act", "swiglu", "Did you mean 'silu'?"),
        ("partial_rotary_factor", 0.5, "must be 1"),
        ("layer_types", ["sliding_attention", "full_attention", "sliding_attention"], "for every layer"),
        ("mlp_bias", False, "unsupported fields"),
    )
    drawn = {"length": 17}

    @staticmethod
    def config(**values) -> Starcoder2Config:
        values["rope_parameters"] = dict(values["rope_parameters"])
        return Starcoder2Config(**{**SPECIAL, "max_position_embeddings": 128, **values})

    @staticmethod
    def draw(data):
        return {
            **draw_llama(data),
            "norm_epsilon": data.draw(EPS, "eps"),
            "use_bias": data.draw(st.booleans(), "use_bias"),
            "sliding_window": data.draw(st.none() | st.integers(2, 15), "window"),
        }
