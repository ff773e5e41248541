"""GPT-2 against transformers."""

from __future__ import annotations

from hypothesis import strategies as st
from transformers import (
    GPT2Config,
    GPT2ForQuestionAnswering,
    GPT2ForSequenceClassification,
    GPT2ForTokenClassification,
    GPT2LMHeadModel,
    GPT2Model,
)

from tests.parity.families.family import FamilyTests

CONFIGS = {
    "odd-heads": dict(
        vocab_size=61, n_embd=21, n_layer=3, n_head=3, n_inner=17, n_positions=19,
        activation_function="relu", layer_norm_epsilon=1e-3, tie_word_embeddings=True,
    ),
    "untied": dict(
        vocab_size=40, n_embd=32, n_layer=1, n_head=4, n_inner=70, n_positions=16,
        activation_function="gelu", layer_norm_epsilon=1e-6, tie_word_embeddings=False,
    ),
    "unscaled": dict(
        vocab_size=83, n_embd=20, n_layer=2, n_head=5, n_positions=25, reorder_and_upcast_attn=True,
        activation_function="gelu_new", layer_norm_epsilon=1e-5, scale_attn_weights=False,
    ),
}  # fmt: skip


def config_of(**values) -> GPT2Config:
    return GPT2Config(**values, bos_token_id=0, eos_token_id=0, pad_token_id=0, num_labels=4)


REFUSED = {
    "scale_attn_by_inverse_layer_idx": (True, "must be false"),
    "add_cross_attention": (True, "must be false"),
    "activation_function": ("gelu_10", "Did you mean 'gelu'"),
    "architectures": (["GPT2DoubleHeadsModel"], "must name a supported class"),
    "n_rotary": (4, "unsupported fields"),
}


class TestGPT2(FamilyTests):
    model_class = GPT2LMHeadModel
    configs = CONFIGS
    config = staticmethod(config_of)
    others = [
        (each, {})
        for each in [
            GPT2Model,
            GPT2ForSequenceClassification,
            GPT2ForTokenClassification,
            GPT2ForQuestionAnswering,
        ]
    ]
    of_others = "odd-heads"
    refusals = [(field, *REFUSED[field]) for field in REFUSED]
    of_refusals = "odd-heads"

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 7), "heads")
        return dict(
            vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
            n_embd=heads * data.draw(st.integers(3, 9), "head_dim"),
            n_layer=data.draw(st.integers(1, 4), "layers"),
            n_head=heads,
            n_inner=data.draw(st.none() | st.integers(1, 70), "hidden"),
            n_positions=data.draw(st.integers(5, 40), "context_length"),
            activation_function=data.draw(
                st.sampled_from(["gelu", "gelu_new", "relu", "silu"]), "activation"
            ),
            layer_norm_epsilon=data.draw(st.sampled_from([1e-5, 1e-3, 1e-2]), "eps"),
            scale_attn_weights=data.draw(st.booleans(), "scaled"),
            tie_word_embeddings=data.draw(st.booleans(), "tied"),
        )
