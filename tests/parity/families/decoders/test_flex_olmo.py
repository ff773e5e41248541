"""FlexOlmo against transformers."""

from __future__ import annotations

import transformers as hf

from tests.parity.families.draws import EPS, FLAG
from tests.parity.families.llamas import LINEAR, LlamaTests, draw_llama, rotation
from tests.parity.families.mixtures import draw_experts


class TestFlexOlmo(LlamaTests):
    model_class = hf.FlexOlmoForCausalLM
    configs = {
        "grouped": dict(
            vocab_size=61, hidden_size=60, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
            intermediate_size=9, num_experts=7, num_experts_per_tok=3, norm_topk_prob=True, rms_norm_eps=1e-3,
            rope_parameters=rotation(500.0),
        ),
        "biases, tied": dict(
            vocab_size=47, hidden_size=40, num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=5,
            intermediate_size=7, num_experts=4, num_experts_per_tok=4, attention_bias=True, tie_word_embeddings=True,
            rope_parameters=LINEAR,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (("hidden_act", "silo", "Did you mean 'silu'?"),)

    @staticmethod
    def draw(data):
        return draw_llama(data) | draw_experts(data) | dict(attention_bias=FLAG, rms_norm_eps=EPS)
