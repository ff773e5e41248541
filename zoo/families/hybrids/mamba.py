"""Mamba (Gu and Dao, 2023) and Falcon-Mamba (TII, 2024): ``MambaConfig``, ``FalconMambaConfig`` and their models."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.layers import Layers
from zoo.families.common.mamba import TIME_STEPS, backbone_tensors, mamba, mamba_rules
from zoo.families.common.template import Template

_D_MODEL = f.Int("hidden_size", default=768)


def _family(model_type: str, name: str, vocabulary: int, layers: int, **mixer: Template) -> Family:
    """A family of Mamba layers alone."""
    parts = mamba(
        d_model=_D_MODEL,
        expand="expand",
        state_size=f.Int("state_size", default=16),
        step_rank="time_step_rank",
        kernel_size=f.Int("conv_kernel", default=4),
        activation=f.Activation("hidden_act", "silu"),
        bias=f.Bool("use_bias", default=False),
        convolution_bias=f.Bool("use_conv_bias", default=True),
        **mixer,
    )
    body = {
        "architecture": "decoder",
        "vocab_size": f.Int("vocab_size", default=vocabulary),
        "d_model": _D_MODEL,
        "decoder": Layers(
            f.Depth("num_hidden_layers", default=layers),
            {
                "kind": "pre_norm",
                "norm": {"kind": "rms_norm", "eps": f.Float("layer_norm_epsilon", default=1e-5)},
                "attention": None,
                "mixer": parts,
                "feed_forward": None,
            },
        ),
        "initialization": f.normal(),
    }
    return Family(
        model_type,
        backbone_tensors(model_type, *mamba_rules()),
        body,
        {f"{name}ForCausalLM": language_modeling(tied=True, bias=False), f"{name}Model": BODY},
        fixed={"intermediate_size": (f.Derived(parts["width"].read), "it is expand times hidden_size")},
        ignored=(
            "residual_in_fp32",
            "time_step_scale",
            "time_step_init_scheme",
            "use_mambapy",
            "use_associative_scan",
            "use_falcon_mambapy",
            *TIME_STEPS,
        ),
    )


_INNER_NORM = {"kind": "rms_norm", "weight": False, "eps": f.Float("mixer_rms_eps", default=1e-6)}

FAMILIES = (
    _family("mamba", "Mamba", 50280, 32),
    _family("falcon_mamba", "FalconMamba", 50280, 32, norm=_INNER_NORM),
)
