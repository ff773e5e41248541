"""CodeGen against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, LAYERS, VOCAB
from tests.parity.families.family import SPECIAL, FamilyTests


class TestCodeGen(FamilyTests):
    model_class = hf.CodeGenForCausalLM
    defaults = {**SPECIAL, "n_positions": 64}
    configs = {
        "half of a head": dict(
            vocab_size=61, n_embd=64, n_layer=3, n_head=4, rotary_dim=8, n_inner=41, layer_norm_epsilon=1e-3,
            attn_pdrop=0.3,
        ),
        "whole heads": dict(vocab_size=47, n_embd=48, n_layer=2, n_head=8, rotary_dim=6, activation_function="relu"),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("activation_function", "swiglu", "Did you mean 'silu'?"),
        ("n_head", 6, "must be a multiple of 4"),
        ("multi_query", True, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        heads, width = (
            4 * data.draw(st.integers(1, 2), "heads / 4"),
            2 * data.draw(st.integers(2, 6), "pairs"),
        )
        return dict(
            vocab_size=VOCAB, n_embd=heads * width, n_head=heads,
            rotary_dim=2 * data.draw(st.integers(1, width // 2), "rotated pairs"), n_layer=LAYERS,
            n_inner=st.none() | st.integers(8, 70), layer_norm_epsilon=EPS,
        )  # fmt: skip
