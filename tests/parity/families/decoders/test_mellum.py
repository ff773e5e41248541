"""Mellum 2 against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, HEAD_DIM, WINDOW, lists
from tests.parity.families.llamas import LINEAR, LlamaTests, draw_llama, rotation
from tests.parity.families.mixtures import draw_experts
from tests.parity.families.sizes import GROUPED, MULTI_HEAD

FULL, SLIDING = "full_attention", "sliding_attention"


class TestMellum(LlamaTests):
    model_class = hf.MellumForCausalLM
    configs = {
        "two rotations": dict(
            GROUPED, head_dim=8, moe_intermediate_size=9, num_experts=7, num_experts_per_tok=3, sliding_window=4,
            layer_types=[SLIDING, FULL, SLIDING], mlp_layer_types=["dense", "sparse", "sparse"], rms_norm_eps=1e-3,
            rope_parameters={FULL: rotation(500.0), SLIDING: rotation(90.0)},
        ),
        "no windows, tied": dict(
            MULTI_HEAD, head_dim=6, moe_intermediate_size=7, num_experts=5, num_experts_per_tok=2,
            norm_topk_prob=False, attention_bias=True, tie_word_embeddings=True,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("layer_types", [FULL] * 4, "each of the 3 layers"),
        ("mlp_layer_types", ["sparse"] * 2, "each of the 3 layers"),
    )
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        values = draw_llama(data) | draw_experts(data)
        rope = {name: value for name, value in values["rope_parameters"].items() if name != "truncate"}
        return values | dict(
            moe_intermediate_size=st.integers(1, 30), head_dim=HEAD_DIM, attention_bias=FLAG, rms_norm_eps=EPS,
            sliding_window=WINDOW, layer_types=lists((FULL, SLIDING), values["num_hidden_layers"]),
            mlp_layer_types=lists(("dense", "sparse"), values["num_hidden_layers"]),
            rope_parameters={FULL: rope, SLIDING: LINEAR},
        )  # fmt: skip
