"""Solar Open against transformers."""

from __future__ import annotations

import transformers as hf

from tests.parity.families.draws import EPS, FLAG, HEAD_DIM
from tests.parity.families.llamas import YARN, LlamaTests, draw_llama, rotation
from tests.parity.families.mixtures import draw_routed


class TestSolarOpen(LlamaTests):
    model_class = hf.SolarOpenForCausalLM
    configs = {
        "groups, biases": dict(
            vocab_size=61, hidden_size=60, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
            head_dim=12, moe_intermediate_size=9, n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=2,
            n_group=4, topk_group=2, attention_bias=True, routed_scaling_factor=1.5, rope_parameters=YARN,
        ),
        "tied": dict(
            vocab_size=47, hidden_size=40, num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=5,
            head_dim=8, moe_intermediate_size=7, n_routed_experts=5, num_experts_per_tok=1, norm_topk_prob=False,
            tie_word_embeddings=True, rope_parameters=rotation(500.0),
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (("hidden_act", "silo", "Did you mean 'silu'?"),)

    @staticmethod
    def draw(data):
        routed = draw_routed(data, 1)
        del routed["first_k_dense_replace"]
        return draw_llama(data) | routed | dict(head_dim=HEAD_DIM, attention_bias=FLAG, rms_norm_eps=EPS)
