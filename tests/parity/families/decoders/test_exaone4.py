"""EXAONE 4 against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, WINDOW
from tests.parity.families.llamas import ALL, LLAMA3, LlamaTests, rotation

FULL, SLIDING = "full_attention", "sliding_attention"


class TestExaone4(LlamaTests):
    model_class = hf.Exaone4ForCausalLM
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
    heads = ALL
    refusals = (
        ("hidden_act", "swiglu", "Did you mean 'silu'?"),
        ("layer_types", [FULL] * 4, "each of the 5 layers"),
        ("sliding_window", None, "must be a number"),
        ("attention_bias", True, "unsupported fields"),
    )
    drawn = {"length": 17}

    draws = dict(rms_norm_eps=EPS, sliding_window=WINDOW, sliding_window_pattern=st.integers(1, 4))
