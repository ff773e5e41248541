"""GLM-4.7-Flash and Youtu-LLM against transformers: latent attention with the names of DeepSeek-V3."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, VOCAB
from tests.parity.families.family import SPECIAL, FamilyTests
from tests.parity.families.llamas import LINEAR, rotation

_LATENT = dict(
    kv_lora_rank=10, q_lora_rank=14, qk_rope_head_dim=6, qk_nope_head_dim=8, v_head_dim=7, max_position_embeddings=64
)  # fmt: skip


class TestGlm4MoeLite(FamilyTests):
    model_class = hf.Glm4MoeLiteForCausalLM
    defaults = {**SPECIAL, **_LATENT}
    configs = {
        "dense first": dict(
            vocab_size=61, hidden_size=24, intermediate_size=20, moe_intermediate_size=9, num_hidden_layers=3,
            num_attention_heads=4, num_key_value_heads=4, n_shared_experts=2, n_routed_experts=8,
            num_experts_per_tok=3, routed_scaling_factor=1.5, n_group=4, topk_group=2, rms_norm_eps=1e-3,
            rope_parameters=rotation(300.0),
        ),
        "kinds by name": dict(
            vocab_size=50, hidden_size=33, intermediate_size=31, moe_intermediate_size=5, num_hidden_layers=3,
            num_attention_heads=3, num_key_value_heads=3, n_routed_experts=5, num_experts_per_tok=2,
            q_lora_rank=None, mlp_layer_types=["sparse", "dense", "sparse"], norm_topk_prob=False,
            rope_interleave=False, tie_word_embeddings=True, attention_bias=True, rope_parameters=LINEAR,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("mlp_layer_types", ["dense"] * 4, "each of the 3 layers"),
        ("mlp_layer_types", ["dense", ["dense"], "sparse"], "must have supported kinds only"),
        ("num_key_value_heads", 2, "num_key_value_heads: must be 4"),
        ("topk_method", "greedy", 'must be "noaux_tc"'),
    )
    strict = False


class TestYoutu(FamilyTests):
    model_class = hf.YoutuForCausalLM
    defaults = {**SPECIAL, **_LATENT, "pad_token_id": None}  # whose row the reference sets to 0 when it loads
    configs = {
        "tied": dict(
            vocab_size=61, hidden_size=24, intermediate_size=20, num_hidden_layers=3, num_attention_heads=4,
            num_key_value_heads=4, rms_norm_eps=1e-3, rope_parameters=rotation(300.0),
        ),
        "no query rank": dict(
            vocab_size=50, hidden_size=33, intermediate_size=31, num_hidden_layers=2, num_attention_heads=3,
            num_key_value_heads=3, q_lora_rank=None, rope_interleave=False, tie_word_embeddings=False,
            attention_bias=True, rope_parameters=LINEAR,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (("num_key_value_heads", 2, "num_key_value_heads: must be 4"),)
    draws = dict(
        vocab_size=VOCAB, hidden_size=st.integers(8, 40), intermediate_size=st.integers(8, 40), num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=4, rms_norm_eps=EPS, attention_bias=FLAG, rope_interleave=FLAG,
        tie_word_embeddings=FLAG,
    )  # fmt: skip
