"""StarCoder2 against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, WINDOW
from tests.parity.families.llamas import DYNAMIC, YARN, LlamaTests, rotation


class TestStarcoder2(LlamaTests):
    model_class = hf.Starcoder2ForCausalLM
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
    heads = ("Model", "ForSequenceClassification", "ForTokenClassification")
    refusals = (
        ("hidden_act", "swiglu", "Did you mean 'silu'?"),
        ("partial_rotary_factor", 0.5, "must be 1"),
        ("layer_types", ["sliding_attention", "full_attention", "sliding_attention"], "for every layer"),
        ("mlp_bias", False, "unsupported fields"),
    )
    drawn = {"length": 17}

    draws = dict(norm_epsilon=EPS, use_bias=FLAG, sliding_window=st.none() | WINDOW)
