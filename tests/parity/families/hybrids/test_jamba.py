"""Jamba against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, VOCAB
from tests.parity.families.family import SPECIAL
from tests.parity.families.mixers import MixerTests


class TestJamba(MixerTests):
    model_class = hf.JambaForCausalLM
    defaults = {**SPECIAL, "max_position_embeddings": 128}
    configs = {
        "mixtures": dict(
            vocab_size=61, hidden_size=24, num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=2,
            intermediate_size=31, rms_norm_eps=1e-3, attn_layer_period=3, attn_layer_offset=1, num_experts=5,
            num_experts_per_tok=2, expert_layer_period=2, expert_layer_offset=1, mamba_d_state=6,
        ),
        "one expert, tied": dict(
            vocab_size=47, hidden_size=20, num_hidden_layers=3, num_attention_heads=5, num_key_value_heads=5,
            intermediate_size=27, attn_layer_period=2, attn_layer_offset=0, num_experts=1, mamba_d_state=5,
            mamba_d_conv=3, mamba_expand=1, mamba_dt_rank=7, mamba_conv_bias=False, hidden_act="gelu",
            tie_word_embeddings=True,
        ),
    }  # fmt: skip
    heads = ("Model", "ForSequenceClassification", "ForSequenceClassification")
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("attn_layer_offset", 3, "must be from 0 to 2"),
        ("expert_layer_period", 0, "must be at least 1"),
        ("sliding_window", 4, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        kv_heads, queries = data.draw(st.integers(1, 3), "kv_heads"), data.draw(st.integers(1, 3), "queries")
        attending, routed = (data.draw(st.integers(1, 4), name) for name in ("attention", "mixtures"))
        experts = data.draw(st.integers(1, 6), "experts")
        return dict(
            vocab_size=VOCAB, hidden_size=2 * kv_heads * queries * data.draw(st.integers(1, 4), "pairs in a head"),
            num_hidden_layers=st.integers(1, 5), num_attention_heads=kv_heads * queries, num_key_value_heads=kv_heads,
            intermediate_size=st.integers(1, 40), attn_layer_period=attending, attn_layer_offset=0,
            expert_layer_period=routed, expert_layer_offset=st.integers(0, routed - 1), num_experts=experts,
            num_experts_per_tok=st.integers(1, experts), mamba_d_state=st.integers(1, 9),
            mamba_expand=st.integers(1, 3), rms_norm_eps=EPS,
        )  # fmt: skip
