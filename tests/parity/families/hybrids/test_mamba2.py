"""Mamba-2 against transformers.

With ``use_bias``, the reference is compared with padding on the right alone: on the left, its convolutions read the biases of
projected padding.  Its single steps do not clamp step sizes to ``time_step_limit``, as its full pass does; ours do.
"""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st
from transformers import Mamba2Config, Mamba2ForCausalLM, Mamba2Model

from tests.parity.families.llamas import SPECIAL
from tests.parity.families.mixers import MixerTests, check


class TestMamba2(MixerTests):
    model_class = Mamba2ForCausalLM
    configs = {
        "groups": dict(
            vocab_size=61, hidden_size=32, num_hidden_layers=3, num_heads=8, head_dim=8, state_size=6, n_groups=4,
            layer_norm_epsilon=1e-3,
        ),
        "limits, tied": dict(
            vocab_size=47, hidden_size=20, num_hidden_layers=2, num_heads=6, head_dim=10, expand=3, state_size=8,
            n_groups=1, use_conv_bias=False, conv_kernel=3, time_step_limit=(0.01, 0.7), tie_word_embeddings=True,
        ),
        "one layer": dict(
            vocab_size=31, hidden_size=14, num_hidden_layers=1, num_heads=2, head_dim=14, state_size=3, n_groups=2,
            hidden_act="gelu",
        ),
    }  # fmt: skip
    others = [(Mamba2Model, {})]
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("expand", 3, "times hidden_size must be the width of 8 heads of 8, 64, not 96"),
        ("time_step_limit", [0.1], "must be two numbers"),
        ("sliding_window", 4, "unsupported fields"),
    )

    @staticmethod
    def config(**values) -> Mamba2Config:
        return Mamba2Config(**{**SPECIAL, **values})

    @staticmethod
    def draw(data):
        groups = data.draw(st.integers(1, 3), "groups")
        heads, head_dim = (
            groups * data.draw(st.integers(1, 3), "heads per group"),
            data.draw(st.integers(1, 9)),
        )
        expand = data.draw(st.sampled_from([1, 2, 3]), "expand")
        return dict(
            vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
            hidden_size=heads * head_dim,
            expand=expand,
            num_heads=heads,
            head_dim=expand * head_dim,
            n_groups=groups,
            state_size=data.draw(st.integers(1, 12), "state"),
            num_hidden_layers=data.draw(st.integers(1, 4), "layers"),
            conv_kernel=data.draw(st.integers(2, 5), "kernel"),
            use_conv_bias=data.draw(st.booleans(), "convolution bias"),
            time_step_limit=data.draw(
                st.sampled_from([(0.0, float("inf")), (0.1, float("inf")), (0.1, 0.5)]), "limit"
            ),
            tie_word_embeddings=data.draw(st.booleans(), "tied"),
        )

    def test_biases(self, tmp_path: Path) -> None:
        config = self.config(**{**self.configs["groups"], "use_bias": True})
        check(self.model_class, config, tmp_path, sides=("right",))
