"""Kimi Linear against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, VOCAB
from tests.parity.families.family import SPECIAL, FamilyTests
from tests.parity.families.sizes import MULTI_HEAD
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config

FULL, LINEAR = "full_attention", "linear_attention"


def test_a_published_config_numbers_layers_from_1():
    data = TestKimiLinear.configured("every fourth").to_dict()
    for name in ("layer_types", "mlp_layer_types", "linear_head_dim", "linear_num_heads"):
        del data[name]
    data["linear_attn_config"] = {
        "full_attn_layers": [2, 5], "kda_layers": [1, 3, 4], "head_dim": 7, "num_heads": 3, "short_conv_kernel_size": 5,
    }  # fmt: skip
    data["first_k_dense_replace"] = 2
    blocks = spec_of_config(Config(data, "config.json"), name="tiny").decoder.layer_blocks()
    assert [block.attention is None for block in blocks] == [True, False, True, True, False]
    assert [block.feed_forward.kind for block in blocks] == ["gated"] * 2 + ["mixture"] * 3
    mixer = blocks[0].mixer
    assert (mixer.head_dim, mixer.heads, mixer.kernel_size) == (7, 3, 5)


class TestKimiLinear(FamilyTests):
    model_class = hf.KimiLinearForCausalLM
    configs = {
        "every fourth": dict(
            vocab_size=61, hidden_size=36, num_hidden_layers=5, num_attention_heads=3, num_key_value_heads=3,
            intermediate_size=41, moe_intermediate_size=13, num_local_experts=5, num_experts_per_tok=2, rms_norm_eps=1e-3,
            kv_lora_rank=10, qk_rope_head_dim=4, qk_nope_head_dim=6, v_head_dim=8, linear_head_dim=6, linear_num_heads=4,
            max_position_embeddings=128,
        ),
        "listed": dict(
            MULTI_HEAD, num_hidden_layers=3, moe_intermediate_size=7, num_local_experts=6, num_experts_per_tok=3,
            n_shared_experts=2, kv_lora_rank=8, q_lora_rank=9, qk_rope_head_dim=6, qk_nope_head_dim=4, v_head_dim=5,
            linear_head_dim=5, linear_num_heads=2, linear_conv_kernel_dim=3, n_group=2, topk_group=1,
            norm_topk_prob=False, layer_types=[FULL, LINEAR, LINEAR], mlp_layer_types=["sparse", "dense", "sparse"],
            attention_bias=True, max_position_embeddings=128, tie_word_embeddings=False,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("layer_types", [LINEAR], "an entry for each of the 5 layers"),
        ("mlp_layer_types", ["dense"], "an entry for each of the 5 layers"),
        ("mlp_layer_types", [["dense"]] * 5, "must have supported kinds only"),
        ("num_key_value_heads", 1, "every head has keys and values of its own"),
        ("mla_use_nope", False, "the reference rotates nothing"),
    )

    @staticmethod
    def draw(data):
        heads, layers = data.draw(st.integers(1, 4), "heads"), data.draw(st.integers(1, 4), "layers")
        experts = data.draw(
            st.integers(2, 6), "experts"
        )  # the reference ranks groups by two of their experts
        kinds = st.lists(st.sampled_from([FULL, LINEAR]), min_size=layers, max_size=layers)
        feeds = st.lists(st.sampled_from(["dense", "sparse"]), min_size=layers, max_size=layers)
        return dict(
            vocab_size=VOCAB, hidden_size=heads * data.draw(st.integers(2, 9), "hidden_size / heads"),
            num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=heads,
            intermediate_size=st.integers(1, 50), moe_intermediate_size=st.integers(1, 20), num_local_experts=experts,
            num_experts_per_tok=st.integers(1, experts), n_shared_experts=st.integers(1, 2), rms_norm_eps=EPS,
            kv_lora_rank=st.integers(1, 20), q_lora_rank=st.none() | st.integers(1, 20),
            qk_rope_head_dim=2 * data.draw(st.integers(1, 4), "shared key width"), qk_nope_head_dim=st.integers(1, 8),
            v_head_dim=st.integers(1, 8), linear_head_dim=st.integers(2, 9), linear_num_heads=st.integers(1, 4),
            linear_conv_kernel_dim=st.integers(2, 5), layer_types=kinds.filter(lambda kinds: FULL in kinds),
            mlp_layer_types=feeds, max_position_embeddings=256, tie_word_embeddings=False, **SPECIAL,
        )  # fmt: skip
