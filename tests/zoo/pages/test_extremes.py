"""Numbers at the ends of what a spec takes: those that validate have a page, and the others are refused."""

from __future__ import annotations

from typing import Any

import pytest

from specs.base.errors import SpecError
from specs.language.load import load
from tests.zoo import tiny
from zoo.builder import assemble
from zoo.pages.positions import positions_section

ENDS = (1e-30, 1.0, 1e30)
SCALINGS: dict[str, dict[str, Any]] = {
    "linear": {"factor": 1e30},
    "yarn": {"factor": 1e30, "original_context_length": 16},
    "dynamic_ntk": {"factor": 1e30, "original_context_length": 16},
    "llama3": {"factor": 1e30, "low_freq_factor": 1e-30, "high_freq_factor": 1e30, "original_context_length": 16},
    "longrope": {"short_factor": [1e-30] * 2, "long_factor": [1e30] * 2, "original_context_length": 16},
}  # fmt: skip


def section(**changes: Any) -> str:
    spec = tiny.gpt2(**changes)
    return positions_section(assemble(spec), spec)[0]


@pytest.mark.parametrize("theta", ENDS)
@pytest.mark.parametrize("scaling", [None, *SCALINGS])
def test_rotations_are_drawn_at_both_ends(theta: float, scaling: str | None) -> None:
    position: dict[str, Any] = {"kind": "rope", "theta": theta}
    if scaling is not None:
        position["scaling"] = {"kind": scaling, **SCALINGS[scaling]}
    if scaling == "yarn" and theta <= 1:
        with pytest.raises(ValueError, match="must exceed 1, because yarn divides by its logarithm"):
            section(position=position)
        return
    text = section(position=position)
    assert "Rotary" in text
    assert "nan" not in text


@pytest.mark.parametrize("spacing", ["paper", "tensor2tensor"])
@pytest.mark.parametrize("base", ENDS)
def test_sinusoids_are_drawn_at_both_ends(base: float, spacing: str) -> None:
    text = section(position={"kind": "sinusoidal", "base": base, "spacing": spacing})
    assert "Sinusoidal" in text
    assert "nan" not in text


@pytest.mark.parametrize("scale", ENDS)
def test_penalties_are_drawn_at_both_ends(scale: float) -> None:
    assert "ALiBi" in section(position={"kind": "alibi", "scale": scale})


@pytest.mark.parametrize(("value", "nearest"), [("1.0e-320", "1e-30"), ("1.0e+40", "1e+30")])
@pytest.mark.parametrize(
    "path",
    ["position.theta", "position.scaling.factor", "decoder.block.norm.eps", "decoder.block.attention.scale"],
)
def test_numbers_beyond_float32_are_refused(path: str, value: str, nearest: str) -> None:
    scaled = ["position.kind=rope", "position.scaling={kind: linear, factor: 2.0}"]
    with pytest.raises(SpecError) as told:
        load("tiny-gpt", [*scaled, f"{path}={value}"])
    (problem,) = told.value.problems
    assert problem.path_text == path
    if problem.rule != "must be greater than or equal to 1":  # as a factor is
        assert problem.rule == "must be from 1e-30 to 1e+30, because models compute in float32"
        assert problem.remedy == f"Use {nearest}."
