"""Flint against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, HEAD_DIM, WINDOW, lists
from tests.parity.families.llamas import YARN, LlamaTests, draw_llama, rotation
from tests.parity.families.mixtures import draw_experts
from tests.parity.families.sizes import MULTI_HEAD

FULL, SLIDING = "full_attention", "sliding_attention"


class TestFlint(LlamaTests):
    model_class = hf.FlintForCausalLM
    configs = {
        "defaults": dict(
            vocab_size=61, hidden_size=36, num_hidden_layers=4, num_attention_heads=6, num_key_value_heads=2, head_dim=8,
            intermediate_size=41, moe_intermediate_size=13, shared_expert_intermediate_size=11, num_experts=5,
            num_experts_per_tok=2, rms_norm_eps=1e-3, sliding_window=4, rope_parameters=rotation(500.0),
        ),
        "listed": dict(
            MULTI_HEAD, num_hidden_layers=3, head_dim=10, moe_intermediate_size=7, shared_expert_intermediate_size=9,
            num_experts=6, num_experts_per_tok=3, norm_topk_prob=False, attention_bias=True,
            layer_types=[SLIDING, FULL, SLIDING], mlp_only_layers=[1], sliding_window=6, tie_word_embeddings=True,
            rope_parameters=YARN,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("layer_types", [FULL], "each of the 4 layers"),
        ("partial_rotary_factor", 0.5, "must be 1"),
    )
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        common = draw_llama(data)
        layers = common["num_hidden_layers"]
        dense = data.draw(
            st.lists(st.integers(0, layers - 1), max_size=layers - 1, unique=True), "dense layers"
        )
        return common | draw_experts(data) | dict(
            head_dim=HEAD_DIM, sliding_window=WINDOW, rms_norm_eps=EPS, attention_bias=FLAG, mlp_only_layers=dense,
            layer_types=lists([FULL, SLIDING], layers), moe_intermediate_size=st.integers(1, 20),
            shared_expert_intermediate_size=st.integers(1, 20),
        )  # fmt: skip
