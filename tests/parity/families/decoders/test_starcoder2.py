"""StarCoder2 against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, WINDOW
from tests.parity.families.llamas import DYNAMIC, YARN, LlamaTests, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY


class TestStarcoder2(LlamaTests):
    model_class = hf.Starcoder2ForCausalLM
    configs = {
        "grouped, windows": dict(
            GROUPED, norm_epsilon=1e-3, sliding_window=5, residual_dropout=0.1, embedding_dropout=0.2,
            attention_dropout=0.3, rope_parameters=rotation(500.0),
        ),
        "without biases, untied": dict(
            MULTI_HEAD, use_bias=False, hidden_act="relu", tie_word_embeddings=False, rope_parameters=DYNAMIC,
        ),
        "yarn": dict(MULTI_QUERY, head_dim=10, rope_parameters=YARN),
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
