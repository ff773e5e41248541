"""Qwen2-MoE and Qwen3-MoE against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, HEAD_DIM, WINDOW
from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import ALL, LLAMA3, YARN, draw_llama, rotation
from tests.parity.families.mixtures import draw_experts
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY

FULL, SLIDING = "full_attention", "sliding_attention"

CONFIGS = {
    "dense first": dict(
        GROUPED, moe_intermediate_size=13, num_experts=5, num_experts_per_tok=2, rms_norm_eps=1e-3,
        max_position_embeddings=128, mlp_only_layers=[0], norm_topk_prob=True, tie_word_embeddings=True,
        rope_parameters=rotation(500.0),
    ),
    "every other": dict(
        MULTI_HEAD, num_hidden_layers=5, moe_intermediate_size=7, num_experts=4, num_experts_per_tok=1,
        rms_norm_eps=1e-5, hidden_act="gelu_new", max_position_embeddings=128, decoder_sparse_step=2,
        use_sliding_window=True, sliding_window=4, rope_parameters=YARN,
    ),
    "every layer": dict(
        MULTI_QUERY, num_hidden_layers=2, moe_intermediate_size=9, num_experts=6, num_experts_per_tok=6,
        max_position_embeddings=128, sliding_window=5, rope_parameters=LLAMA3,
    ),
}  # fmt: skip
QWEN2 = {
    "dense first": dict(shared_expert_intermediate_size=17, qkv_bias=False),
    "every other": dict(shared_expert_intermediate_size=5, max_window_layers=3),
    "every layer": dict(shared_expert_intermediate_size=20, max_window_layers=1),
}
"""Further fields of Qwen2."""
QWEN3 = {
    "dense first": dict(head_dim=14, attention_bias=True),
    "every other": dict(head_dim=8),
    "every layer": dict(head_dim=16, attention_bias=True),
}
"""Further fields of Qwen3."""


def draw_common(data) -> dict:
    common = draw_llama(data)
    layers = common["num_hidden_layers"]
    with_mixture = data.draw(st.integers(1, layers), "sparse step")
    dense = st.lists(st.integers(0, layers).filter(lambda layer: (layer + 1) % with_mixture), max_size=2)
    return dict(
        **common, **draw_experts(data), rms_norm_eps=EPS, moe_intermediate_size=st.integers(1, 30),
        decoder_sparse_step=with_mixture, mlp_only_layers=dense,
    )  # fmt: skip


class TestQwen2Moe(FamilyTests):
    model_class = hf.Qwen2MoeForCausalLM
    configs = {name: {**values, **QWEN2[name]} for name, values in CONFIGS.items()}
    heads = ALL
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("decoder_sparse_step", 0, "must be at least 1"),
        ("mlp_only_layers", ["0"], "must be a list of layers by number"),
        ("layer_types", [SLIDING, FULL, FULL], "without a window"),
        ("attention_bias", True, "unsupported fields"),
    )
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        common = draw_common(data)
        layers = common["num_hidden_layers"]
        windows = {"max_window_layers": data.draw(st.integers(0, layers), "max_window_layers")}
        if data.draw(st.booleans(), "windows"):
            windows |= {"use_sliding_window": True, "sliding_window": data.draw(st.integers(2, 15), "window")}
            if data.draw(st.booleans(), "layer_types"):
                kinds = st.lists(st.sampled_from([FULL, SLIDING]), min_size=layers, max_size=layers)
                windows["layer_types"] = data.draw(kinds, "kinds")
        return dict(**common, **windows, qkv_bias=FLAG, shared_expert_intermediate_size=st.integers(1, 30))


class TestQwen3Moe(FamilyTests):
    model_class = hf.Qwen3MoeForCausalLM
    configs = {name: {**values, **QWEN3[name]} for name, values in CONFIGS.items()}
    heads = ALL
    of_others = ("every layer",)
    refusals = (
        ("shared_expert_intermediate_size", 8, "unsupported fields"),
        ("layer_types", [FULL, FULL, FULL], "unsupported fields"),
    )
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        return dict(
            **draw_common(data), head_dim=HEAD_DIM, attention_bias=FLAG, use_sliding_window=FLAG,
            sliding_window=WINDOW,
        )  # fmt: skip
