"""Hy3 against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, HEAD_DIM
from tests.parity.families.llamas import LINEAR, LlamaTests, draw_llama, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD


class TestHyV3(LlamaTests):
    model_class = hf.HYV3ForCausalLM
    configs = {
        "dense first": dict(
            GROUPED, head_dim=8, moe_intermediate_size=9, num_experts=7, num_experts_per_tok=3, num_shared_experts=2,
            router_scaling_factor=1.5, rms_norm_eps=1e-3, rope_parameters=rotation(500.0),
        ),
        "kinds by name, tied": dict(
            MULTI_HEAD, num_hidden_layers=3, head_dim=6, moe_intermediate_size=7, num_experts=5, num_experts_per_tok=2,
            attention_bias=True, mlp_layer_types=["sparse", "dense", "sparse"], tie_word_embeddings=True,
            rope_parameters=LINEAR,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("mlp_bias", True, "must be false"),
        ("mlp_layer_types", ["dense", "sparsely", "dense"], "Did you mean 'sparse'?"),
    )

    @staticmethod
    def draw(data):
        experts = data.draw(st.integers(1, 7), "experts")
        return draw_llama(data) | dict(
            moe_intermediate_size=st.integers(1, 30), num_experts=experts, num_shared_experts=st.integers(1, 3),
            num_experts_per_tok=st.integers(1, experts), router_scaling_factor=st.sampled_from([1.0, 2.5]),
            head_dim=HEAD_DIM, attention_bias=FLAG, rms_norm_eps=EPS,
        )  # fmt: skip
