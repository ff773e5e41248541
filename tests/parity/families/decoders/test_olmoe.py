"""OLMoE against transformers."""

from __future__ import annotations

import transformers as hf

from tests.parity.families.draws import EPS, FLAG
from tests.parity.families.llamas import LINEAR, YARN, LlamaTests, draw_llama, rotation
from tests.parity.families.mixtures import draw_experts
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY


class TestOlmoe(LlamaTests):
    model_class = hf.OlmoeForCausalLM
    configs = {
        "two of five": dict(
            GROUPED, rms_norm_eps=1e-3, num_experts=5, num_experts_per_tok=2, norm_topk_prob=True,
            rope_parameters=rotation(500.0),
        ),
        "one of three, biases": dict(
            MULTI_HEAD, intermediate_size=9, num_experts=3, num_experts_per_tok=1, attention_bias=True,
            hidden_act="gelu", tie_word_embeddings=True, rope_parameters=YARN,
        ),
        "all": dict(MULTI_QUERY, intermediate_size=13, num_experts=4, num_experts_per_tok=4, rope_parameters=LINEAR),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("clip_qkv", 8.0, "the reference clips after the norms"),
        ("n_shared_experts", 1, "unsupported fields"),
    )
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        return draw_llama(data) | draw_experts(data) | dict(attention_bias=FLAG, rms_norm_eps=EPS)
