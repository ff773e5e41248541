"""Mistral Small 4 against transformers: queries of latent attention grow within the lengths that are tried."""

from __future__ import annotations

from typing import Any

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, VOCAB
from tests.parity.families.family import SPECIAL, FamilyTests


def yarn(**more: Any) -> dict[str, Any]:
    """YaRN, without which the reference rotates a whole head and fails; the share that rotates is that of qk_rope_head_dim."""
    shared = {
        "rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 4,
        "llama_4_scaling_beta": 0.3, "partial_rotary_factor": 6 / 14, "beta_fast": 32.0, "beta_slow": 1.0,
    }  # fmt: skip
    return {**shared, **more}


YARN = yarn(mscale=0.9, mscale_all_dim=0.8)
_LATENT = dict(
    kv_lora_rank=10, q_lora_rank=14, qk_rope_head_dim=6, qk_nope_head_dim=8, v_head_dim=7, max_position_embeddings=64
)  # fmt: skip


class TestMistral4(FamilyTests):
    model_class = hf.Mistral4ForCausalLM
    defaults = {**SPECIAL, **_LATENT}
    configs = {
        "yarn": dict(
            vocab_size=61, hidden_size=24, intermediate_size=20, moe_intermediate_size=9, num_hidden_layers=3,
            num_attention_heads=4, num_key_value_heads=4, n_shared_experts=2, n_routed_experts=8,
            num_experts_per_tok=3, routed_scaling_factor=1.5, n_group=4, topk_group=2, rms_norm_eps=1e-3,
            first_k_dense_replace=1, rope_parameters=YARN,
        ),
        "no query rank": dict(
            vocab_size=50, hidden_size=33, intermediate_size=31, moe_intermediate_size=5, num_hidden_layers=2,
            num_attention_heads=3, num_key_value_heads=3, n_routed_experts=5, num_experts_per_tok=2,
            q_lora_rank=None, norm_topk_prob=False, rope_interleave=False, tie_word_embeddings=True,
            attention_bias=True, rope_parameters=yarn(),
        ),
    }  # fmt: skip
    heads = ("Model", "ForSequenceClassification", "ForTokenClassification")
    refusals = (
        ("num_key_value_heads", 2, "num_key_value_heads: must be 4"),
        ("rope_parameters", {**YARN, "partial_rotary_factor": 0.5}, "must be 0.428571, the share of qk_rope_head_dim"),
    )  # fmt: skip
    strict = False
    draws = dict(
        vocab_size=VOCAB, hidden_size=st.integers(8, 40), intermediate_size=st.integers(8, 40), num_hidden_layers=2,
        moe_intermediate_size=st.integers(1, 30), n_routed_experts=6, num_experts_per_tok=st.integers(1, 3),
        n_group=st.sampled_from([1, 2]), n_shared_experts=st.integers(1, 3), num_attention_heads=4, num_key_value_heads=4,
        first_k_dense_replace=st.integers(0, 2), rms_norm_eps=EPS, attention_bias=FLAG, rope_interleave=FLAG,
        tie_word_embeddings=FLAG, norm_topk_prob=FLAG, rope_parameters=st.sampled_from([YARN, yarn()]),
    )  # fmt: skip
