"""Ministral against transformers."""

from __future__ import annotations

import transformers as hf

from tests.parity.families.draws import EPS, HEAD_DIM, WINDOW
from tests.parity.families.llamas import ALL, YARN, LlamaTests, rotation
from tests.parity.families.sizes import GROUPED

FULL, SLIDING = "full_attention", "sliding_attention"


class TestMinistral(LlamaTests):
    model_class = hf.MinistralForCausalLM
    configs = {
        "every layer": dict(GROUPED, head_dim=10, rms_norm_eps=1e-3, sliding_window=4, rope_parameters=rotation(500.0)),
        "some layers, tied": dict(
            vocab_size=47, hidden_size=40, num_hidden_layers=4, num_attention_heads=5, num_key_value_heads=1,
            head_dim=12, intermediate_size=50, tie_word_embeddings=True, sliding_window=5,
            layer_types=[FULL, SLIDING, SLIDING, FULL], rope_parameters=YARN,
        ),
    }  # fmt: skip
    heads = ALL
    refusals = (
        ("layer_types", [FULL] * 4, "each of the 3 layers"),
        ("sliding_window", None, "must be a number"),
        ("attention_bias", True, "unsupported fields"),
    )
    drawn = {"length": 17}
    draws = dict(rms_norm_eps=EPS, head_dim=HEAD_DIM, sliding_window=WINDOW)
