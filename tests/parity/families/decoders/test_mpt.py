"""MPT against transformers."""

from __future__ import annotations

from hypothesis import strategies as st
from transformers import MptConfig, MptForCausalLM

from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import ALL, EPS, SPECIAL, classes, labels


class TestMpt(FamilyTests):
    model_class = MptForCausalLM
    configs = {
        "clipped": dict(
            vocab_size=61, d_model=60, n_layers=3, n_heads=6, layer_norm_epsilon=1e-3,
            attn_config={"clip_qkv": 0.5, "softmax_scale": 0.3},
        ),
        "untied": dict(vocab_size=47, d_model=40, n_layers=2, n_heads=4, tie_word_embeddings=False),
    }  # fmt: skip
    others = [(each, labels(each)) for each in classes("Mpt", *ALL)]
    refusals = (
        ("attn_config", {"qk_ln": True}, "no norms of queries and keys"),
        ("attn_config", {"alibi": False}, "always adds ALiBi"),
        ("expansion_ratio", 3, "must be 4"),
        ("logit_scale", 0.5, "does not scale"),
    )

    @staticmethod
    def config(**values) -> MptConfig:
        return MptConfig(**{**SPECIAL, "max_seq_len": 64, **values})

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 6), "heads")
        clip = data.draw(st.none() | st.sampled_from([0.3, 1.0, 8.0]), "clip")
        return {
            "vocab_size": data.draw(st.integers(5, 90), "vocab_size"),
            "d_model": heads * data.draw(st.integers(4, 12), "head width"),
            "n_heads": heads,
            "n_layers": data.draw(st.integers(1, 4), "layers"),
            "layer_norm_epsilon": data.draw(EPS, "eps"),
            "tie_word_embeddings": data.draw(st.booleans(), "tied"),
            "attn_config": {"clip_qkv": clip},
        }
