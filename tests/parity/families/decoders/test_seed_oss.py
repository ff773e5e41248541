"""Seed-OSS against transformers."""

from __future__ import annotations

import transformers as hf

from tests.parity.families.draws import EPS, FLAG, HEAD_DIM
from tests.parity.families.llamas import ALL, DYNAMIC, YARN, LlamaTests, rotation


class TestSeedOss(LlamaTests):
    model_class = hf.SeedOssForCausalLM
    configs = {
        "grouped": dict(
            vocab_size=61, hidden_size=60, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
            head_dim=14, intermediate_size=41, rms_norm_eps=1e-3, rope_parameters=rotation(500.0),
        ),
        "biases, tied": dict(
            vocab_size=47, hidden_size=40, num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=5,
            head_dim=8, intermediate_size=50, attention_bias=True, attention_out_bias=True, mlp_bias=True,
            hidden_act="gelu_new", tie_word_embeddings=True, rope_parameters=DYNAMIC,
        ),
        "yarn": dict(
            vocab_size=31, hidden_size=28, num_hidden_layers=1, num_attention_heads=7, num_key_value_heads=1,
            head_dim=10, intermediate_size=33, attention_bias=False, rope_parameters=YARN,
        ),
    }  # fmt: skip
    heads = ALL
    refusals = (
        ("hidden_act", "swiglu", "Did you mean 'silu'?"),
        ("rope_parameters", {"rope_type": "linar", "factor": 2.0}, "Did you mean 'linear'?"),
        ("partial_rotary_factor", 0.5, "must be 1"),
        ("sliding_window", 4, "unsupported fields"),
    )
    draws = dict(
        attention_bias=FLAG, attention_out_bias=FLAG, mlp_bias=FLAG, head_dim=HEAD_DIM, rms_norm_eps=EPS
    )
