"""The step sizes of Mamba-2 begin between their bounds, for a step that is clamped gives its bias no gradient."""

from __future__ import annotations

import pytest

from exporters.verification.module_checks import check_module
from specs.language.load import load
from zoo import build
from zoo.components.mamba2 import Mamba2


@pytest.mark.parametrize(
    ("limit", "size"),
    [
        ("null", 0.01),
        ("{least: 0.001}", 0.01),
        ("{most: 0.1}", 0.01),
        ("{most: 0.005}", 0.0025),
        ("{least: 0.01}", 0.02),
        ("{least: 0.5}", 1.0),
        ("{least: 1, most: 3}", 2.0),
        ("{least: 1.0e+4}", 2.0e4),
    ],
)
def test_steps_begin_between_their_bounds(limit: str, size: float) -> None:
    changes = ["decoder.layers=1", "vocab_size=64", f"decoder.block.mixer.step_limit={limit}"]
    mixer = build(load("mamba2-130m", changes), weights="random").get_submodule("decoder.blocks.0.mixer")
    assert isinstance(mixer, Mamba2)
    steps = mixer._step(mixer.step_bias.new_zeros(()))
    assert steps.tolist() == pytest.approx([size] * mixer.heads, rel=1e-4)


def test_a_model_with_a_high_lower_bound_passes_its_checks() -> None:
    check_module(load("mamba2-130m", ["decoder.layers=1", "decoder.block.mixer.step_limit={least: 0.5}"]))
