"""GPT-BigCode against transformers."""

from __future__ import annotations

from hypothesis import strategies as st
from transformers import GPTBigCodeConfig, GPTBigCodeForCausalLM

from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import EPS, SPECIAL, classes, labels


class TestGPTBigCode(FamilyTests):
    model_class = GPTBigCodeForCausalLM
    configs = {
        "one key": dict(
            vocab_size=61, n_embd=60, n_layer=3, n_head=6, n_inner=41, layer_norm_epsilon=1e-3, attn_pdrop=0.3,
        ),
        "a key per head, untied": dict(
            vocab_size=47, n_embd=40, n_layer=2, n_head=5, multi_query=False, activation_function="relu",
            scale_attn_weights=False, tie_word_embeddings=False,
        ),
    }  # fmt: skip
    others = [
        (each, labels(each))
        for each in classes("GPTBigCode", "Model", "ForSequenceClassification", "ForTokenClassification")
    ]
    refusals = (
        ("activation_function", "swiglu", "Did you mean 'silu'?"),
        ("add_cross_attention", True, "must be false"),
        ("num_key_value_heads", 2, "it follows from multi_query"),
    )

    @staticmethod
    def config(**values) -> GPTBigCodeConfig:
        return GPTBigCodeConfig(**{**SPECIAL, "n_positions": 64, **values})

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 6), "heads")
        return {
            "vocab_size": data.draw(st.integers(5, 90), "vocab_size"),
            "n_embd": heads * data.draw(st.integers(4, 12), "head width"),
            "n_head": heads,
            "n_layer": data.draw(st.integers(1, 4), "layers"),
            "n_inner": data.draw(st.none() | st.integers(8, 70), "hidden"),
            "layer_norm_epsilon": data.draw(EPS, "eps"),
            **{name: data.draw(st.booleans(), name) for name in ("multi_query", "tie_word_embeddings")},
        }
