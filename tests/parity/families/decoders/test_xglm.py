"""XGLM against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import ACTIVATION, FLAG, HIDDEN, LAYERS, VOCAB
from tests.parity.families.family import SPECIAL, FamilyTests


class TestXGLM(FamilyTests):
    model_class = hf.XGLMForCausalLM
    defaults = {**SPECIAL, "max_position_embeddings": 29}
    configs = {
        "tied": dict(vocab_size=61, d_model=24, num_layers=3, attention_heads=3, ffn_dim=17),
        "unscaled": dict(
            vocab_size=40, d_model=40, num_layers=2, attention_heads=5, ffn_dim=70, scale_embedding=False,
            activation_function="relu", tie_word_embeddings=False,
        ),
        "two heads": dict(
            vocab_size=83, d_model=28, num_layers=1, attention_heads=2, ffn_dim=33, max_position_embeddings=9,
            activation_function="gelu_new",
        ),
        "padding row on a position": dict(
            vocab_size=61, d_model=24, num_layers=1, attention_heads=3, ffn_dim=17, pad_token_id=5,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("activation_function", "rellu", "Did you mean 'relu'"),
        ("add_cross_attention", True, "must be false"),
        ("layer_norm_eps", 1e-6, "unsupported fields"),
        ("architectures", ["XGLMForSequenceClassification"], "must name a supported class"),
    )

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 7), "heads")
        return dict(
            vocab_size=VOCAB, d_model=2 * heads * data.draw(st.integers(2, 5), "pairs in a head"), num_layers=LAYERS,
            attention_heads=heads, ffn_dim=HIDDEN, activation_function=ACTIVATION, scale_embedding=FLAG,
            tie_word_embeddings=FLAG,
        )  # fmt: skip
