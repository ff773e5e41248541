"""Falcon-H1 against transformers."""

from __future__ import annotations

import pytest
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import EPS, FLAG
from tests.parity.families.family import SPECIAL
from tests.parity.families.llamas import LINEAR, YARN, draw_llama, rotation
from tests.parity.families.mixers import MixerTests, check, draw_mamba2
from tests.parity.families.sizes import GROUPED, MULTI_HEAD, MULTI_QUERY
from zoo.configs.exporting import write_config
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config

MULTIPLIERS = (
    "embedding_multiplier", "lm_head_multiplier", "key_multiplier", "attention_in_multiplier",
    "attention_out_multiplier", "ssm_in_multiplier", "ssm_out_multiplier",
)  # fmt: skip
ALL = dict(
    embedding_multiplier=5.656854249492381, lm_head_multiplier=0.25, key_multiplier=0.39, attention_in_multiplier=1.2,
    attention_out_multiplier=0.9375, ssm_in_multiplier=1.25, ssm_out_multiplier=0.7,
    ssm_multipliers=[0.8, 0.6, 1.3, 0.5, 1.7], mlp_multipliers=[0.88, 0.58],
)  # fmt: skip


class TestFalconH1(MixerTests):
    model_class = hf.FalconH1ForCausalLM
    defaults = {**SPECIAL, "max_position_embeddings": 128}
    configs = {
        "all multipliers": dict(
            GROUPED, hidden_size=48, rms_norm_eps=1e-3, mamba_d_ssm=32, mamba_n_heads=4, mamba_d_state=6,
            mamba_n_groups=2, rope_parameters=rotation(1e11), **ALL,
        ),
        "norm before the gate, tied": dict(
            MULTI_HEAD, attention_bias=True, mlp_bias=True, mamba_d_ssm=None, mamba_expand=1, mamba_n_heads=10,
            mamba_d_state=5, mamba_n_groups=5, mamba_d_conv=3, mamba_conv_bias=False, mamba_rms_norm=True,
            hidden_act="gelu", tie_word_embeddings=True, rope_parameters=LINEAR,
            ssm_multipliers=[1.0, 1.0, 1.0, 0.5, 1.0],
        ),
        "norm after the gate, wide heads": dict(
            MULTI_QUERY, num_attention_heads=3, head_dim=10, mamba_d_ssm=24, mamba_n_heads=4, mamba_d_head=6,
            mamba_d_state=7, mamba_rms_norm=True, mamba_norm_before_gate=False, key_multiplier=0.011048543456039804,
            mlp_multipliers=[1.0, 0.3], rope_parameters=YARN,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("hidden_act", "silo", "Did you mean 'silu'?"),
        ("mamba_d_ssm", 40, "must be the width of 4 heads of 8, 32"),
        ("projectors_bias", True, "must equal mamba_proj_bias, which is false"),
        ("ssm_multipliers", [1.0, 2.0], "must be 5 numbers"),
        ("mlp_multipliers", [1.0, "2"], "must be 2 numbers"),
        ("sliding_window", 4, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        values, mixer = draw_llama(data), draw_mamba2(data)
        factor = st.sampled_from([1.0, 0.3, 0.9375, 1.7])
        heads = mixer["mamba_n_heads"]
        del mixer["hidden_size"], mixer["mamba_expand"]
        return values | mixer | dict.fromkeys(MULTIPLIERS, factor) | dict(
            ssm_multipliers=st.lists(factor, min_size=5, max_size=5),
            mlp_multipliers=st.lists(factor, min_size=2, max_size=2),
            mamba_d_ssm=heads * data.draw(st.integers(1, 6), "width of a mixer's head"), mamba_rms_norm=FLAG,
            mamba_norm_before_gate=FLAG, attention_bias=FLAG, mlp_bias=FLAG, rms_norm_eps=EPS,
        )  # fmt: skip


@pytest.mark.slow
def test_biases_of_the_projections(tmp_path) -> None:
    """The reference adds them to padding on the left, which its convolution sees."""
    values = {**TestFalconH1.configs["all multipliers"], "mamba_proj_bias": True, "projectors_bias": True}
    check(hf.FalconH1ForCausalLM, TestFalconH1.config(**values), tmp_path, sides=("right",))


@pytest.mark.parametrize("head_dim", [64, 80, 96, 128])
@pytest.mark.parametrize(
    "multiplier", [1.0, 0.39062499999999994, 0.3, 0.17677669529663687, 0.011048543456039804]
)
def test_multipliers_of_keys_are_written_as_they_were_read(multiplier: float, head_dim: int) -> None:
    values = {**TestFalconH1.configs["all multipliers"], "head_dim": head_dim, "key_multiplier": multiplier}
    config = TestFalconH1.config(**values)
    spec = spec_of_config(Config(config.to_dict(), "config.json"), name="tiny")
    assert write_config(spec, "falcon_h1")["key_multiplier"] == pytest.approx(multiplier, rel=1e-15)
