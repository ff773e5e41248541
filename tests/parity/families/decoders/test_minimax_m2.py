"""MiniMax-M2 against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, HEAD_DIM
from tests.parity.families.llamas import LINEAR, YARN, LlamaTests, draw_llama, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY


class TestMiniMaxM2(LlamaTests):
    model_class = hf.MiniMaxM2ForCausalLM
    configs = {
        "two of five": dict(
            GROUPED, head_dim=12, rms_norm_eps=1e-3, num_local_experts=5, num_experts_per_tok=2, rotary_dim=8,
            rope_parameters=rotation(500.0),
        ),
        "all, tied": dict(
            MULTI_HEAD, head_dim=8, intermediate_size=9, num_local_experts=3, num_experts_per_tok=3, hidden_act="gelu",
            tie_word_embeddings=True, rope_parameters={**YARN, "partial_rotary_factor": 0.5},
        ),
        "whole heads": dict(
            MULTI_QUERY, head_dim=10, intermediate_size=13, num_local_experts=4, num_experts_per_tok=3,
            rope_parameters=LINEAR,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("attention_bias", True, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        experts, width = data.draw(st.integers(1, 7), "experts"), 2 * data.draw(HEAD_DIM, "half of the width")
        return draw_llama(data) | dict(
            head_dim=width, rotary_dim=st.sampled_from([width, width // 2]), num_local_experts=experts,
            num_experts_per_tok=st.integers(1, experts), rms_norm_eps=EPS,
        )  # fmt: skip
