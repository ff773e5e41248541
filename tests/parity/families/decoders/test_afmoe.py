"""Trinity against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, HEAD_DIM, WINDOW
from tests.parity.families.llamas import YARN, LlamaTests, draw_llama, rotation
from tests.parity.families.sizes import GROUPED, MULTI_HEAD

FULL, SLIDING = "full_attention", "sliding_attention"


class TestAfmoe(LlamaTests):
    model_class = hf.AfmoeForCausalLM
    configs = {
        "dense first": dict(
            GROUPED, num_hidden_layers=5, head_dim=8, moe_intermediate_size=9, num_experts=7, num_experts_per_tok=3,
            num_shared_experts=2, route_scale=2.5, sliding_window=4, mup_enabled=True, rms_norm_eps=1e-3,
            rope_parameters=rotation(500.0),
        ),
        "kinds by name, tied": dict(
            MULTI_HEAD, num_hidden_layers=3, head_dim=6, moe_intermediate_size=7, num_experts=5, num_experts_per_tok=2,
            num_dense_layers=0, tie_word_embeddings=True, sliding_window=7, layer_types=[SLIDING, FULL, SLIDING],
            rope_parameters=YARN,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("attention_bias", True, "must be false: the gate of the output has none"),
        ("global_attn_every_n_layers", 0, "must be at least 1"),
        ("n_group", 2, "must be 1: experts are not grouped"),
        ("sliding_window", None, "must be a number"),
    )
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        values = draw_llama(data)
        experts = data.draw(st.integers(1, 7), "experts")
        return values | dict(
            moe_intermediate_size=st.integers(1, 30), num_experts=experts, num_shared_experts=st.integers(1, 3),
            num_experts_per_tok=st.integers(1, experts), route_scale=st.sampled_from([1.0, 2.5]), head_dim=HEAD_DIM,
            num_dense_layers=st.integers(0, values["num_hidden_layers"]), sliding_window=WINDOW, mup_enabled=FLAG,
            rms_norm_eps=EPS,
        )  # fmt: skip
