"""GPT-J against transformers."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from transformers import (
    GPTJConfig,
    GPTJForCausalLM,
    GPTJForQuestionAnswering,
    GPTJForSequenceClassification,
    GPTJModel,
)

from tests.parity.families.family import FamilyTests

CONFIGS: dict[str, dict[str, Any]] = {
    "odd-heads": dict(
        vocab_size=61, n_embd=27, n_layer=3, n_head=3, n_inner=17, n_positions=37, rotary_dim=6,
        activation_function="relu", layer_norm_epsilon=1e-3,
    ),
    "tied": dict(
        vocab_size=40, n_embd=32, n_layer=1, n_head=4, n_inner=70, n_positions=30, rotary_dim=8,
        activation_function="gelu", layer_norm_epsilon=1e-6, tie_word_embeddings=True,
    ),
    "two-rotated": dict(
        vocab_size=83, n_embd=20, n_layer=2, n_head=5, n_positions=25, rotary_dim=2,
        activation_function="gelu_new", layer_norm_epsilon=1e-5,
    ),
}  # fmt: skip


def config_of(labels: int = 2, **values) -> GPTJConfig:
    return GPTJConfig(**values, bos_token_id=0, eos_token_id=0, pad_token_id=0, num_labels=labels)


class TestGPTJ(FamilyTests):
    model_class = GPTJForCausalLM
    config = staticmethod(config_of)
    configs = CONFIGS
    others = [(GPTJModel, {}), (GPTJForSequenceClassification, {"labels": 4}), (GPTJForQuestionAnswering, {})]
    refusals = (
        ("rotary", False, "must be true"),
        ("scale_attn_weights", False, "must be true"),
        ("activation_function", "gelu_newer", "Did you mean 'gelu_new'"),
        ("rotary_pct", 0.5, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        heads, width = data.draw(st.integers(1, 7), "heads"), data.draw(st.integers(3, 12), "head_dim")
        return dict(
            vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
            n_embd=heads * width,
            n_layer=data.draw(st.integers(1, 4), "layers"),
            n_head=heads,
            n_inner=data.draw(st.none() | st.integers(1, 70), "hidden"),
            n_positions=40,
            rotary_dim=2 * data.draw(st.integers(1, width // 2), "pairs"),
            activation_function=data.draw(
                st.sampled_from(["gelu", "gelu_new", "relu", "silu"]), "activation"
            ),
            layer_norm_epsilon=data.draw(st.sampled_from([1e-5, 1e-3, 1e-2]), "eps"),
            tie_word_embeddings=data.draw(st.booleans(), "tied"),
        )
