"""dots.llm1 against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, HEAD_DIM, WINDOW
from tests.parity.families.llamas import LINEAR, YARN, LlamaTests, draw_llama, rotation
from tests.parity.families.mixtures import draw_routed
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY

FULL, SLIDING = "full_attention", "sliding_attention"


class TestDots1(LlamaTests):
    model_class = hf.Dots1ForCausalLM
    configs = {
        "dense first, windows last": dict(
            GROUPED, head_dim=12, moe_intermediate_size=9, n_routed_experts=8, num_experts_per_tok=3,
            n_shared_experts=2, n_group=4, topk_group=2, routed_scaling_factor=1.5, first_k_dense_replace=1,
            norm_topk_prob=True, sliding_window=4, max_window_layers=1, rope_parameters=rotation(500.0),
        ),
        "biases, tied": dict(
            MULTI_HEAD, head_dim=8, moe_intermediate_size=7, n_routed_experts=5, num_experts_per_tok=1,
            n_shared_experts=1, attention_bias=True, hidden_act="gelu", tie_word_embeddings=True, sliding_window=None,
            rope_parameters=YARN,
        ),
        "every other": dict(
            MULTI_QUERY, num_hidden_layers=3, head_dim=10, moe_intermediate_size=5, n_routed_experts=6,
            num_experts_per_tok=4, n_shared_experts=3, first_k_dense_replace=2, sliding_window=5,
            layer_types=[SLIDING, FULL, SLIDING], rope_parameters=LINEAR,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("n_shared_experts", None, "n_shared_experts: is required"),
        ("sliding_window", None, "sliding_window: must be a number"),
        ("use_qk_norm", True, "unsupported fields"),
    )
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        common = draw_llama(data)
        return common | draw_routed(data, common["num_hidden_layers"]) | dict(
            head_dim=HEAD_DIM, attention_bias=FLAG, sliding_window=st.none() | WINDOW,
            max_window_layers=st.integers(0, 4), rms_norm_eps=EPS,
        )  # fmt: skip
