"""Mamba and Falcon-Mamba against transformers.

With ``use_bias``, the reference is compared with padding on the right alone: on the left, its convolutions read the biases of
projected padding.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from transformers import (
    FalconMambaConfig,
    FalconMambaForCausalLM,
    FalconMambaModel,
    MambaConfig,
    MambaForCausalLM,
    MambaModel,
)

from tests.parity.families.llamas import SPECIAL
from tests.parity.families.mixers import MixerTests, check

CONFIGS: dict[str, dict[str, Any]] = {
    "usual": dict(vocab_size=61, hidden_size=24, num_hidden_layers=3, state_size=6, layer_norm_epsilon=1e-3),
    "no convolution bias": dict(
        vocab_size=47, hidden_size=20, num_hidden_layers=2, expand=3, state_size=5, use_conv_bias=False,
        conv_kernel=3, time_step_rank=7, tie_word_embeddings=False,
    ),
    "one layer": dict(
        vocab_size=31, hidden_size=14, num_hidden_layers=1, state_size=1, expand=1, hidden_act="gelu"
    ),
}  # fmt: skip
REFUSALS = (
    ("hidden_act", "silo", "Did you mean 'silu'?"),
    ("intermediate_size", 50, "must be 48: it is expand times hidden_size"),
    ("sliding_window", 4, "unsupported fields"),
)


def draw_mamba(data: st.DataObject) -> dict:
    return dict(
        vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
        hidden_size=data.draw(st.integers(4, 40), "hidden_size"),
        num_hidden_layers=data.draw(st.integers(1, 4), "layers"),
        expand=data.draw(st.integers(1, 3), "expand"),
        state_size=data.draw(st.integers(1, 12), "state"),
        conv_kernel=data.draw(st.integers(2, 5), "kernel"),
        time_step_rank=data.draw(st.sampled_from(["auto", 1, 5]), "rank"),
        use_conv_bias=data.draw(st.booleans(), "convolution bias"),
        tie_word_embeddings=data.draw(st.booleans(), "tied"),
    )


class TestMamba(MixerTests):
    model_class = MambaForCausalLM
    configs = CONFIGS
    others = [(MambaModel, {})]
    refusals = REFUSALS
    draw = staticmethod(draw_mamba)

    @staticmethod
    def config(**values) -> MambaConfig:
        return MambaConfig(**{**SPECIAL, **values})

    def test_biases(self, tmp_path: Path) -> None:
        config = self.config(**{**self.configs["usual"], "use_bias": True})
        check(self.model_class, config, tmp_path, sides=("right",))


class TestFalconMamba(MixerTests):
    model_class = FalconMambaForCausalLM
    configs = {name: {**values, "mixer_rms_eps": 1e-4} for name, values in CONFIGS.items()}
    others = [(FalconMambaModel, {})]
    refusals = REFUSALS
    draw = staticmethod(draw_mamba)

    @staticmethod
    def config(**values) -> FalconMambaConfig:
        return FalconMambaConfig(**{**SPECIAL, **values})
