"""XGLM against transformers."""

from __future__ import annotations

from hypothesis import strategies as st
from transformers import XGLMConfig, XGLMForCausalLM, XGLMModel

from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import SPECIAL


class TestXGLM(FamilyTests):
    model_class = XGLMForCausalLM
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
    others = ((XGLMModel, {}),)
    refusals = (
        ("activation_function", "rellu", "Did you mean 'relu'"),
        ("add_cross_attention", True, "must be false"),
        ("layer_norm_eps", 1e-6, "unsupported fields"),
        ("architectures", ["XGLMForSequenceClassification"], "must name a supported class"),
    )

    @staticmethod
    def config(**values) -> XGLMConfig:
        return XGLMConfig(**{**SPECIAL, "max_position_embeddings": 29, **values})

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 7), "heads")
        return dict(
            vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
            d_model=2 * heads * data.draw(st.integers(2, 5), "pairs in a head"),
            num_layers=data.draw(st.integers(1, 4), "layers"),
            attention_heads=heads,
            ffn_dim=data.draw(st.integers(1, 70), "hidden"),
            activation_function=data.draw(
                st.sampled_from(["gelu", "gelu_new", "relu", "silu"]), "activation"
            ),
            scale_embedding=data.draw(st.booleans(), "scaled"),
            tie_word_embeddings=data.draw(st.booleans(), "tied"),
        )
