"""Mamba and Falcon-Mamba against transformers.

With ``use_bias``, the reference is compared with padding on the right alone: on the left, its convolutions read the biases of
projected padding.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FLAG, LAYERS, VOCAB
from tests.parity.families.mixers import MixerTests, check

CONFIGS: dict[str, dict[str, Any]] = {
    "usual": dict(vocab_size=61, hidden_size=24, num_hidden_layers=3, state_size=6, layer_norm_epsilon=1e-3),
    "no convolution bias": dict(
        vocab_size=47, hidden_size=20, num_hidden_layers=2, expand=3, state_size=5, use_conv_bias=False,
        conv_kernel=3, time_step_rank=7, tie_word_embeddings=False,
    ),
    "one layer": dict(vocab_size=31, hidden_size=14, num_hidden_layers=1, state_size=1, expand=1, hidden_act="gelu"),
}  # fmt: skip
REFUSALS = (
    ("hidden_act", "silo", "Did you mean 'silu'?"),
    ("intermediate_size", 50, "must be 48: it is expand times hidden_size"),
    ("sliding_window", 4, "unsupported fields"),
)


def draw_mamba(data: st.DataObject) -> dict:
    return dict(
        vocab_size=VOCAB, hidden_size=st.integers(4, 40), num_hidden_layers=LAYERS, expand=st.integers(1, 3),
        state_size=st.integers(1, 12), conv_kernel=st.integers(2, 5), time_step_rank=st.sampled_from(["auto", 1, 5]),
        use_conv_bias=FLAG, tie_word_embeddings=FLAG,
    )  # fmt: skip


class TestMamba(MixerTests):
    model_class = hf.MambaForCausalLM
    configs = CONFIGS
    heads = ("Model",)
    refusals = REFUSALS
    draw = staticmethod(draw_mamba)

    def test_biases(self, tmp_path: Path) -> None:
        config = self.config(**{**self.configs["usual"], "use_bias": True})
        check(self.model_class, config, tmp_path, sides=("right",))


class TestFalconMamba(MixerTests):
    model_class = hf.FalconMambaForCausalLM
    configs = {name: {**values, "mixer_rms_eps": 1e-4} for name, values in CONFIGS.items()}
    heads = ("Model",)
    refusals = REFUSALS
    draw = staticmethod(draw_mamba)
