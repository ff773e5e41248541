"""EXAONE 4 against transformers."""

from __future__ import annotations

from hypothesis import strategies as st
from transformers import Exaone4Config, Exaone4ForCausalLM

from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import ALL, EPS, LLAMA3, SPECIAL, classes, draw_llama, labels, rotation

FULL, SLIDING = "full_attention", "sliding_attention"


class TestExaone4(FamilyTests):
    model_class = Exaone4ForCausalLM
    configs = {
        "every fourth": dict(
            vocab_size=61, hidden_size=60, num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=2,
            intermediate_size=41, rms_norm_eps=1e-3, sliding_window=4, rope_parameters=LLAMA3,
        ),
        "every second, tied": dict(
            vocab_size=47, hidden_size=40, num_hidden_layers=3, num_attention_heads=5, num_key_value_heads=5,
            intermediate_size=50, hidden_act="gelu_new", tie_word_embeddings=True, sliding_window=7,
            sliding_window_pattern=2, rope_parameters=rotation(500.0),
        ),
        "no window": dict(
            vocab_size=31, hidden_size=28, num_hidden_layers=2, num_attention_heads=7, num_key_value_heads=1,
            intermediate_size=33, sliding_window=None, layer_types=[FULL, FULL], rope_parameters=LLAMA3,
        ),
    }  # fmt: skip
    others = [(each, labels(each)) for each in classes("Exaone4", *ALL)]
    refusals = (
        ("hidden_act", "swiglu", "Did you mean 'silu'?"),
        ("layer_types", [FULL] * 4, "each of the 5 layers"),
        ("sliding_window", None, "must be a number"),
        ("attention_bias", True, "unsupported fields"),
    )
    drawn = {"length": 17}

    @staticmethod
    def config(**values) -> Exaone4Config:
        values["rope_parameters"] = dict(values["rope_parameters"])
        return Exaone4Config(**{**SPECIAL, "max_position_embeddings": 128, **values})

    @staticmethod
    def draw(data):
        return {
            **draw_llama(data),
            "rms_norm_eps": data.draw(EPS, "eps"),
            "sliding_window": data.draw(st.integers(2, 15), "window"),
            "sliding_window_pattern": data.draw(st.integers(1, 4), "pattern"),
        }
