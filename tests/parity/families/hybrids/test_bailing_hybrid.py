"""Ling 3 against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, VOCAB, lists
from tests.parity.families.family import SPECIAL, FamilyTests
from tests.parity.families.llamas import YARN_MSCALE, rotation
from tests.parity.families.sizes import MULTI_HEAD

FULL, LINEAR = "full_attention", "linear_attention"


class TestBailingHybrid(FamilyTests):
    model_class = hf.BailingHybridForCausalLM
    configs = {
        "every third": dict(
            vocab_size=61, hidden_size=36, num_hidden_layers=5, num_attention_heads=3, num_key_value_heads=3,
            intermediate_size=41, moe_intermediate_size=13, num_local_experts=6, num_experts_per_tok=2, n_group=2,
            topk_group=1, rms_norm_eps=1e-3, kv_lora_rank=10, qk_rope_head_dim=4, qk_nope_head_dim=6, v_head_dim=8,
            head_dim=7, layer_group_size=3, max_position_embeddings=128,
        ),
        "unbounded": dict(
            MULTI_HEAD, num_hidden_layers=3, moe_intermediate_size=7, num_local_experts=4, num_experts_per_tok=3,
            n_group=1, topk_group=1, n_shared_experts=2, norm_topk_prob=False, kv_lora_rank=8, q_lora_rank=9,
            qk_rope_head_dim=6, qk_nope_head_dim=4, v_head_dim=5, head_dim=4, short_conv_kernel_size=3,
            kda_safe_gate=False, layer_types=[FULL, LINEAR, LINEAR], mlp_layer_types=["sparse", "dense", "sparse"],
            attention_bias=True, max_position_embeddings=128, rope_parameters=YARN_MSCALE,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("layer_types", [LINEAR], "an entry for each of the 5 layers"),
        ("kda_lower_bound", 5.0, "must be below 0"),
        ("num_key_value_heads", 1, "every head has keys and values of its own"),
        ("group_norm_size", 4, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        heads, layers = data.draw(st.integers(1, 4), "heads"), data.draw(st.integers(1, 4), "layers")
        groups = data.draw(st.integers(1, 2), "groups")
        experts = groups * data.draw(st.integers(2, 4), "experts of a group")
        return dict(
            vocab_size=VOCAB, hidden_size=heads * data.draw(st.integers(2, 9), "hidden_size / heads"),
            num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=heads,
            intermediate_size=st.integers(1, 50), moe_intermediate_size=st.integers(1, 20), num_local_experts=experts,
            num_experts_per_tok=st.integers(1, experts // groups), n_group=groups, topk_group=st.integers(1, groups),
            n_shared_experts=st.integers(1, 2), rms_norm_eps=EPS, kv_lora_rank=st.integers(1, 20),
            q_lora_rank=st.none() | st.integers(1, 20), v_head_dim=st.integers(1, 8), qk_nope_head_dim=st.integers(1, 8),
            qk_rope_head_dim=2 * data.draw(st.integers(1, 4), "rotated pairs"), head_dim=st.integers(2, 9),
            short_conv_kernel_size=st.integers(2, 5), kda_safe_gate=FLAG, kda_lower_bound=st.sampled_from([-5.0, -0.7]),
            layer_types=lists([FULL, LINEAR], layers).filter(lambda kinds: FULL in kinds),
            mlp_layer_types=lists(["dense", "sparse"], layers), max_position_embeddings=256,
            rope_parameters=st.sampled_from([rotation(100.0), YARN_MSCALE]), **SPECIAL,
        )  # fmt: skip
