"""MPT against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, LAYERS, VOCAB
from tests.parity.families.family import SPECIAL, FamilyTests
from tests.parity.families.llamas import ALL


class TestMpt(FamilyTests):
    model_class = hf.MptForCausalLM
    defaults = {**SPECIAL, "max_seq_len": 64}
    configs = {
        "clipped": dict(
            vocab_size=61, d_model=60, n_layers=3, n_heads=6, layer_norm_epsilon=1e-3,
            attn_config={"clip_qkv": 0.5, "softmax_scale": 0.3},
        ),
        "untied": dict(vocab_size=47, d_model=40, n_layers=2, n_heads=4, tie_word_embeddings=False),
    }  # fmt: skip
    heads = ALL
    refusals = (
        ("attn_config", {"qk_ln": True}, "no norms of queries and keys"),
        ("attn_config", {"alibi": False}, "always adds ALiBi"),
        ("expansion_ratio", 3, "must be 4"),
        ("logit_scale", 0.5, "does not scale"),
    )

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 6), "heads")
        clip = data.draw(st.none() | st.sampled_from([0.3, 1.0, 8.0]), "clip")
        return dict(
            vocab_size=VOCAB, d_model=heads * data.draw(st.integers(4, 12), "head width"), n_heads=heads,
            n_layers=LAYERS, layer_norm_epsilon=EPS, tie_word_embeddings=FLAG, attn_config={"clip_qkv": clip},
        )  # fmt: skip
