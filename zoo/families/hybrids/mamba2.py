"""Mamba-2 (Dao and Gu, 2024): ``Mamba2Config``, ``Mamba2Model`` and its head."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.layers import Layers
from zoo.families.common.mamba import TIME_STEPS, backbone_tensors, mamba2, mamba2_rules

_D_MODEL = f.Int("hidden_size", default=4096)
_EPS = f.Float("layer_norm_epsilon", default=1e-5)
_MIXER = mamba2(
    heads=f.Int("num_heads", default=128),
    head_dim=f.Int("head_dim", default=64),
    expand=("expand", 2),
    d_model=_D_MODEL,
    state_size=f.Int("state_size", default=128),
    groups=f.Int("n_groups", default=8),
    kernel_size=f.Int("conv_kernel", default=4),
    activation=f.Activation("hidden_act", "silu"),
    bias=f.Bool("use_bias", default=False),
    convolution_bias=f.Bool("use_conv_bias", default=True),
    eps=_EPS,
)

FAMILIES = (
    Family(
        "mamba2",
        backbone_tensors("mamba2", *mamba2_rules()),
        {
            "architecture": "decoder",
            "vocab_size": f.Int("vocab_size", default=32768),
            "d_model": _D_MODEL,
            "decoder": Layers(
                f.Depth("num_hidden_layers", default=64),
                {
                    "kind": "pre_norm",
                    "norm": {"kind": "rms_norm", "eps": _EPS},
                    "attention": None,
                    "mixer": _MIXER,
                    "feed_forward": None,
                },
            ),
            "initialization": f.normal(),
        },
        {"Mamba2ForCausalLM": language_modeling(tied=False, bias=False), "Mamba2Model": BODY},
        ignored=("chunk_size", "residual_in_fp32", "time_step_rank", *TIME_STEPS),
    ),
)
