"""FlexOlmo against transformers."""

from __future__ import annotations

import transformers as hf

from tests.parity.families.draws import EPS, FLAG
from tests.parity.families.llamas import LINEAR, LlamaTests, draw_llama, rotation
from tests.parity.families.mixtures import draw_experts
from tests.parity.families.sizes import GROUPED, MULTI_HEAD


class TestFlexOlmo(LlamaTests):
    model_class = hf.FlexOlmoForCausalLM
    configs = {
        "grouped": dict(
            GROUPED, intermediate_size=9, num_experts=7, num_experts_per_tok=3, norm_topk_prob=True, rms_norm_eps=1e-3,
            rope_parameters=rotation(500.0),
        ),
        "biases, tied": dict(
            MULTI_HEAD, intermediate_size=7, num_experts=4, num_experts_per_tok=4, attention_bias=True,
            tie_word_embeddings=True, rope_parameters=LINEAR,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (("hidden_act", "silo", "Did you mean 'silu'?"),)

    @staticmethod
    def draw(data):
        return draw_llama(data) | draw_experts(data) | dict(attention_bias=FLAG, rms_norm_eps=EPS)
