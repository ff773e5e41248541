"""GPT-BigCode against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG, LAYERS, VOCAB
from tests.parity.families.family import SPECIAL, FamilyTests


class TestGPTBigCode(FamilyTests):
    model_class = hf.GPTBigCodeForCausalLM
    defaults = {**SPECIAL, "n_positions": 64}
    configs = {
        "one key": dict(
            vocab_size=61, n_embd=60, n_layer=3, n_head=6, n_inner=41, layer_norm_epsilon=1e-3, attn_pdrop=0.3,
        ),
        "a key per head, untied": dict(
            vocab_size=47, n_embd=40, n_layer=2, n_head=5, multi_query=False, activation_function="relu",
            scale_attn_weights=False, tie_word_embeddings=False,
        ),
    }  # fmt: skip
    heads = ("Model", "ForSequenceClassification", "ForTokenClassification")
    refusals = (
        ("activation_function", "swiglu", "Did you mean 'silu'?"),
        ("add_cross_attention", True, "must be false"),
        ("num_key_value_heads", 2, "it follows from multi_query"),
    )

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 6), "heads")
        return dict(
            vocab_size=VOCAB, n_embd=heads * data.draw(st.integers(4, 12), "head width"), n_head=heads,
            n_layer=LAYERS, n_inner=st.none() | st.integers(8, 70), layer_norm_epsilon=EPS, multi_query=FLAG,
            tie_word_embeddings=FLAG,
        )  # fmt: skip
