"""GLM-4.5 against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, HEAD_DIM
from tests.parity.families.llamas import LINEAR, YARN, LlamaTests, draw_llama, rotation
from tests.parity.families.mixtures import draw_routed
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY


class TestGlm4Moe(LlamaTests):
    model_class = hf.Glm4MoeForCausalLM
    configs = {
        "dense first": dict(
            GROUPED, head_dim=12, moe_intermediate_size=9, n_routed_experts=8, num_experts_per_tok=3,
            n_shared_experts=2, n_group=4, topk_group=2, routed_scaling_factor=1.5, first_k_dense_replace=1,
            use_qk_norm=True, attention_bias=True, rope_parameters={**rotation(500.0), "partial_rotary_factor": 0.5},
        ),
        "no group, tied": dict(
            MULTI_HEAD, head_dim=8, moe_intermediate_size=7, n_routed_experts=5, num_experts_per_tok=1,
            norm_topk_prob=False, first_k_dense_replace=0, hidden_act="gelu", tie_word_embeddings=True,
            rope_parameters={**YARN, "partial_rotary_factor": 0.25},
        ),
        "dense mostly": dict(
            MULTI_QUERY, num_hidden_layers=3, head_dim=10, moe_intermediate_size=5, n_routed_experts=6,
            num_experts_per_tok=4, n_shared_experts=3, first_k_dense_replace=2,
            rope_parameters={**LINEAR, "partial_rotary_factor": 1.0},
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("mlp_bias", True, "unsupported fields"),
    )
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        common = draw_llama(data)
        part = data.draw(st.sampled_from([0.25, 0.5, 1.0]), "rotated part")
        return common | draw_routed(data, common["num_hidden_layers"]) | dict(
            rope_parameters={**common["rope_parameters"], "partial_rotary_factor": part},
            head_dim=HEAD_DIM.map(lambda width: 4 * width), use_qk_norm=FLAG, attention_bias=FLAG, rms_norm_eps=EPS,
        )  # fmt: skip
