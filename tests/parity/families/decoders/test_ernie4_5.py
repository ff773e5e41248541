"""ERNIE 4.5, dense and with mixtures, against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, HEAD_DIM
from tests.parity.families.llamas import LINEAR, YARN, LlamaTests, draw_llama, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY


class TestErnie(LlamaTests):
    model_class = hf.Ernie4_5ForCausalLM
    configs = {
        "grouped": dict(GROUPED, head_dim=14, rms_norm_eps=1e-3, rope_parameters=rotation(500.0)),
        "biases, untied": dict(
            MULTI_HEAD, head_dim=8, use_bias=True, hidden_act="gelu", tie_word_embeddings=False, rope_parameters=YARN,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("partial_rotary_factor", 0.5, "must be 1"),
        ("sliding_window", 4, "unsupported fields"),
    )

    draws = dict(head_dim=HEAD_DIM, use_bias=FLAG, rms_norm_eps=EPS)


class TestErnieMoe(LlamaTests):
    model_class = hf.Ernie4_5_MoeForCausalLM
    configs = {
        "dense first": dict(
            GROUPED, moe_intermediate_size=9, moe_num_experts=5, moe_k=2, rms_norm_eps=1e-3,
            rope_parameters=rotation(500.0),
        ),
        "every other, biases": dict(
            MULTI_HEAD, num_hidden_layers=5, moe_intermediate_size=7, moe_num_experts=3, moe_k=3,
            moe_num_shared_experts=0, moe_layer_start_index=0, moe_layer_end_index=3, moe_layer_interval=2,
            use_bias=True, hidden_act="gelu", tie_word_embeddings=False, rope_parameters=LINEAR,
        ),
        "every layer": dict(
            MULTI_QUERY, num_hidden_layers=2, moe_intermediate_size=5, moe_num_experts=6, moe_k=4,
            moe_num_shared_experts=1, moe_layer_start_index=0, rope_parameters=YARN,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("moe_layer_interval", 0, "must be at least 1"),
        ("moe_norm_min", 0.5, "weights are divided by their sum"),
        ("sliding_window", 4, "unsupported fields"),
    )
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        experts, layer = data.draw(st.integers(1, 7), "experts"), st.integers(0, 4)
        return draw_llama(data) | dict(
            moe_intermediate_size=st.integers(1, 30), moe_num_experts=experts, moe_k=st.integers(1, experts),
            moe_num_shared_experts=st.integers(0, 2), moe_layer_start_index=layer,
            moe_layer_end_index=layer | st.just(-1), moe_layer_interval=st.integers(1, 3), use_bias=FLAG,
            rms_norm_eps=EPS,
        )  # fmt: skip
