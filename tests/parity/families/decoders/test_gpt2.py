"""GPT-2 against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import ACTIVATION, FLAG, HIDDEN, LAYERS, VOCAB
from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import ALL


class TestGPT2(FamilyTests):
    model_class = hf.GPT2LMHeadModel
    configs = {
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
    heads = ALL
    refusals = (
        ("scale_attn_by_inverse_layer_idx", True, "must be false"),
        ("add_cross_attention", True, "must be false"),
        ("activation_function", "gelu_10", "Did you mean 'gelu'"),
        ("architectures", ["GPT2DoubleHeadsModel"], "must name a supported class"),
        ("n_rotary", 4, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 7), "heads")
        return dict(
            vocab_size=VOCAB, n_embd=heads * data.draw(st.integers(3, 9), "head_dim"), n_layer=LAYERS, n_head=heads,
            n_inner=st.none() | HIDDEN, n_positions=st.integers(5, 40), activation_function=ACTIVATION,
            layer_norm_epsilon=st.sampled_from([1e-5, 1e-3, 1e-2]), scale_attn_weights=FLAG, tie_word_embeddings=FLAG,
        )  # fmt: skip
