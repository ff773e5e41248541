"""EXAONE 4 against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, WINDOW
from tests.parity.families.llamas import ALL, LLAMA3, LlamaTests, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY

FULL, SLIDING = "full_attention", "sliding_attention"


class TestExaone4(LlamaTests):
    model_class = hf.Exaone4ForCausalLM
    configs = {
        "every fourth": dict(GROUPED, num_hidden_layers=5, rms_norm_eps=1e-3, sliding_window=4, rope_parameters=LLAMA3),
        "every second, tied": dict(
            MULTI_HEAD, num_hidden_layers=3, hidden_act="gelu_new", tie_word_embeddings=True, sliding_window=7,
            sliding_window_pattern=2, rope_parameters=rotation(500.0),
        ),
        "no window": dict(
            MULTI_QUERY, num_hidden_layers=2, sliding_window=None, layer_types=[FULL, FULL], rope_parameters=LLAMA3,
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
