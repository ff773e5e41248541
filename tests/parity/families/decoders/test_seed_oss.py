"""Seed-OSS against transformers."""

from __future__ import annotations

import transformers as hf

from tests.parity.families.draws import EPS, FLAG, HEAD_DIM
from tests.parity.families.llamas import ALL, DYNAMIC, YARN, LlamaTests, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY


class TestSeedOss(LlamaTests):
    model_class = hf.SeedOssForCausalLM
    configs = {
        "grouped": dict(GROUPED, head_dim=14, rms_norm_eps=1e-3, rope_parameters=rotation(500.0)),
        "biases, tied": dict(
            MULTI_HEAD, head_dim=8, attention_bias=True, attention_out_bias=True, mlp_bias=True, hidden_act="gelu_new",
            tie_word_embeddings=True, rope_parameters=DYNAMIC,
        ),
        "yarn": dict(MULTI_QUERY, head_dim=10, attention_bias=False, rope_parameters=YARN),
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
