"""Mamba-2 against transformers.

With ``use_bias``, the reference is compared with padding on the right alone: on the left, its convolutions read the biases of
projected padding.  Its single steps do not clamp step sizes to ``time_step_limit``, as its full pass does; ours do.
"""

from __future__ import annotations

from pathlib import Path

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FLAG, LAYERS, VOCAB
from tests.parity.families.mixers import MixerTests, check


class TestMamba2(MixerTests):
    model_class = hf.Mamba2ForCausalLM
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
    heads = ("Model",)
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("expand", 3, "times hidden_size must be the width of 8 heads of 8, 64, not 96"),
        ("time_step_limit", [0.1], "must be two numbers"),
        ("sliding_window", 4, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        groups = data.draw(st.integers(1, 3), "groups")
        heads, head_dim = (
            groups * data.draw(st.integers(1, 3), "heads per group"),
            data.draw(st.integers(1, 9)),
        )
        expand = data.draw(st.sampled_from([1, 2, 3]), "expand")
        return dict(
            vocab_size=VOCAB, hidden_size=heads * head_dim, expand=expand, num_heads=heads,
            head_dim=expand * head_dim, n_groups=groups, state_size=st.integers(1, 12), num_hidden_layers=LAYERS,
            conv_kernel=st.integers(2, 5), use_conv_bias=FLAG,
            time_step_limit=st.sampled_from([(0.0, float("inf")), (0.1, float("inf")), (0.1, 0.5)]),
            tie_word_embeddings=FLAG,
        )  # fmt: skip

    def test_biases(self, tmp_path: Path) -> None:
        config = TestMamba2.configured("groups", **{"use_bias": True})
        check(self.model_class, config, tmp_path, sides=("right",))
