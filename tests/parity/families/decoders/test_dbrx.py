"""DBRX against transformers.

The reference takes the base of the rotation from rope_parameters, and cannot be built without one in ``attn_config``.
"""

from __future__ import annotations

from typing import Any

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import ACTIVATION, FEW_LAYERS, VOCAB
from tests.parity.families.family import SPECIAL, FamilyTests
from tests.parity.families.llamas import rotation


def config(kv_heads: int, theta: float, clip: float, **ffn: Any) -> dict[str, Any]:
    """The inner configs and the rotation."""
    return dict(
        attn_config={"kv_n_heads": kv_heads, "clip_qkv": clip, "rope_theta": theta},
        ffn_config=ffn, rope_parameters=rotation(theta),
    )  # fmt: skip


class TestDbrx(FamilyTests):
    model_class = hf.DbrxForCausalLM
    defaults = {**SPECIAL, "max_seq_len": 128}
    configs = {
        "clipped": dict(
            vocab_size=61, d_model=60, n_layers=3, n_heads=6,
            **config(2, 500.0, 0.5, ffn_hidden_size=9, moe_num_experts=7, moe_top_k=3),
        ),
        "not normalised": dict(
            vocab_size=47, d_model=40, n_layers=2, n_heads=5,
            **config(
                5, 90.0, 5.0, ffn_hidden_size=7, moe_num_experts=4, moe_top_k=2, moe_normalize_expert_weights=None,
                ffn_act_fn={"name": "gelu"},
            ),
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("ffn_config.moe_normalize_expert_weights", 2.0, "must be 1 or null"),
        ("ffn_config.ffn_act_fn", {"name": "silo"}, "Did you mean 'silu'?"),
        ("attn_config.rope_theta", 700.0, "must equal that of rope_parameters, which is 500"),
        ("tie_word_embeddings", True, "must be false"),
    )

    @staticmethod
    def draw(data):
        kv_heads, groups = data.draw(st.integers(1, 3), "kv_heads"), data.draw(st.integers(1, 3), "groups")
        experts = data.draw(st.integers(1, 7), "experts")
        return dict(
            vocab_size=VOCAB, d_model=2 * kv_heads * groups * data.draw(st.integers(2, 5), "pairs in a head"),
            n_layers=FEW_LAYERS, n_heads=kv_heads * groups,
            **config(
                kv_heads, data.draw(st.sampled_from([100.0, 1e4]), "theta"), data.draw(st.sampled_from([0.5, 3.0]), "clip"),
                ffn_hidden_size=data.draw(st.integers(1, 30), "width"), moe_num_experts=experts,
                moe_top_k=data.draw(st.integers(1, experts), "top_k"), ffn_act_fn={"name": data.draw(ACTIVATION, "act")},
            ),
        )  # fmt: skip
