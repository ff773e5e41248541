"""Jais 2 against transformers."""

from __future__ import annotations

import transformers as hf

from tests.parity.families.draws import EPS, FLAG, HEAD_DIM
from tests.parity.families.llamas import LLAMA3, LlamaTests, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD


class TestJais2(LlamaTests):
    model_class = hf.Jais2ForCausalLM
    configs = {
        "biases": dict(GROUPED, layer_norm_eps=1e-3, rope_parameters=LLAMA3),
        "no biases, tied": dict(
            MULTI_HEAD, head_dim=12, attention_bias=False, mlp_bias=False, hidden_act="gelu", tie_word_embeddings=True,
            rope_parameters=rotation(500.0),
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (("hidden_act", "silo", "Did you mean 'silu'?"),)
    draws = dict(layer_norm_eps=EPS, head_dim=HEAD_DIM, attention_bias=FLAG, mlp_bias=FLAG)
