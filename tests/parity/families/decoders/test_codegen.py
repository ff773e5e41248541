"""CodeGen against transformers."""

from __future__ import annotations

from hypothesis import strategies as st
from transformers import CodeGenConfig, CodeGenForCausalLM, CodeGenModel

from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import EPS, SPECIAL


class TestCodeGen(FamilyTests):
    model_class = CodeGenForCausalLM
    configs = {
        "half of a head": dict(
            vocab_size=61, n_embd=64, n_layer=3, n_head=4, rotary_dim=8, n_inner=41, layer_norm_epsilon=1e-3,
            attn_pdrop=0.3,
        ),
        "whole heads": dict(vocab_size=47, n_embd=48, n_layer=2, n_head=8, rotary_dim=6, activation_function="relu"),
    }  # fmt: skip
    others = [(CodeGenModel, {})]
    refusals = (
        ("activation_function", "swiglu", "Did you mean 'silu'?"),
        ("n_head", 6, "must be a multiple of 4"),
        ("multi_query", True, "unsupported fields"),
    )

    @staticmethod
    def config(**values) -> CodeGenConfig:
        return CodeGenConfig(**{**SPECIAL, "n_positions": 64, **values})

    @staticmethod
    def draw(data):
        heads, width = (
            4 * data.draw(st.integers(1, 2), "heads / 4"),
            2 * data.draw(st.integers(2, 6), "pairs"),
        )
        return {
            "vocab_size": data.draw(st.integers(5, 90), "vocab_size"),
            "n_embd": heads * width,
            "n_head": heads,
            "rotary_dim": 2 * data.draw(st.integers(1, width // 2), "rotated pairs"),
            "n_layer": data.draw(st.integers(1, 4), "layers"),
            "n_inner": data.draw(st.none() | st.integers(8, 70), "hidden"),
            "layer_norm_epsilon": data.draw(EPS, "eps"),
        }
