"""MiniCPM3 against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, VOCAB
from tests.parity.families.family import SPECIAL, FamilyTests
from tests.parity.families.llamas import DYNAMIC, LLAMA3, YARN, rotation
from tests.parity.families.sizes import MULTI_HEAD

LONGROPE = {
    "rope_type": "longrope", "rope_theta": 1000.0, "short_factor": [1.0, 1.5], "long_factor": [2.0, 4.0],
    "original_max_position_embeddings": 16,
}  # fmt: skip


class TestMiniCPM3(FamilyTests):
    model_class = hf.MiniCPM3ForCausalLM
    defaults = {**SPECIAL, "max_position_embeddings": 128}
    configs = {
        "factors": dict(
            vocab_size=61, hidden_size=36, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4,
            intermediate_size=41, rms_norm_eps=1e-3, kv_lora_rank=10, q_lora_rank=12, qk_nope_head_dim=6,
            qk_rope_head_dim=4, scale_emb=1.7, scale_depth=1.1, dim_model_base=24, rope_parameters=LONGROPE,
        ),
        "none": dict(
            MULTI_HEAD, kv_lora_rank=8, q_lora_rank=None, qk_nope_head_dim=4, qk_rope_head_dim=6, v_head_dim=5,
            scale_emb=1, scale_depth=None, dim_model_base=None, attention_bias=True, mlp_bias=True,
            tie_word_embeddings=False, rope_parameters=YARN,
        ),
    }  # fmt: skip
    heads = ("Model", "ForSequenceClassification")
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("num_key_value_heads", 1, "every head has keys and values of its own"),
        ("head_dim", 9, "it is what is rotated"),
    )

    @staticmethod
    def draw(data):
        heads, hidden = (
            data.draw(st.integers(1, 4), "heads"),
            data.draw(st.integers(2, 9), "hidden_size / heads"),
        )
        return dict(
            vocab_size=VOCAB, hidden_size=heads * hidden, num_hidden_layers=st.integers(1, 4), num_attention_heads=heads,
            num_key_value_heads=heads, intermediate_size=st.integers(1, 50), rms_norm_eps=EPS, attention_bias=FLAG,
            kv_lora_rank=st.integers(1, 20), q_lora_rank=st.none() | st.integers(1, 20), qk_nope_head_dim=st.integers(1, 8),
            qk_rope_head_dim=2 * data.draw(st.integers(2, 4), "rotated pairs"), v_head_dim=st.none() | st.integers(1, 8),
            scale_emb=st.sampled_from([1, 0.5, 2]), scale_depth=st.sampled_from([None, 0.7, 1.4]),
            dim_model_base=st.sampled_from([None, 5, heads * hidden]), tie_word_embeddings=FLAG,
            rope_parameters=st.sampled_from([rotation(100.0), DYNAMIC, LLAMA3]),
        )  # fmt: skip
