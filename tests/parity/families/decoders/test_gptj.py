"""GPT-J against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import ACTIVATION, FLAG, HIDDEN, LAYERS, VOCAB
from tests.parity.families.family import FamilyTests


class TestGPTJ(FamilyTests):
    model_class = hf.GPTJForCausalLM
    configs = {
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
    heads = ("Model", "ForSequenceClassification", "ForQuestionAnswering")
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
            vocab_size=VOCAB, n_embd=heads * width, n_layer=LAYERS, n_head=heads, n_inner=st.none() | HIDDEN,
            n_positions=40, rotary_dim=2 * data.draw(st.integers(1, width // 2), "pairs"),
            activation_function=ACTIVATION, layer_norm_epsilon=st.sampled_from([1e-5, 1e-3, 1e-2]),
            tie_word_embeddings=FLAG,
        )  # fmt: skip
