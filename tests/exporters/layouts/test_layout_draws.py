"""Presets, reduced and changed in one place, and whole random specs, for the layouts of clients: each is refused before anything
is written, with a reason, or exported and verified.

Each draw has a number and is found again by it.  ``ZOO_LAYOUT_DRAWS=200`` draws more than the sixty of ``make test-slow``.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from exporters.graph.precisions import PRECISIONS
from exporters.target.targets import TARGETS
from specs.model.model import Model
from tests.exporters.reduced_presets import structure, structures
from tests.exporters.whole.test_draws import exported_or_refused
from tests.strategies import Data
from tests.thinned import one_in
from tests.whole_specs import specs_of_seed
from tests.zoo.models.other_kinds import with_another_kind

DRAWS = int(os.environ.get("ZOO_LAYOUT_DRAWS", "60"))

CLIENTS = ("onnx", "genai", "optimum", "transformers-js")

QUICK = (0, 4, 6)
"""Two that are refused and one that is written."""


def drawn(number: int) -> tuple[Model, Data]:
    """The spec of a draw, and how it is exported."""
    draw = random.Random(number)
    chosen: Data = {
        "layout": draw.choice(CLIENTS),
        "target": draw.choice(["portable", "cpu", *TARGETS]),
        "precision": draw.choice(["fp32", "fp32", *PRECISIONS]),
    }
    if draw.random() < 0.1:
        return specs_of_seed(number, 1)[0], chosen
    preset = structure(draw.choice(structures()))
    if draw.random() < 0.5:
        return preset, chosen
    return draw.choice([model for *_, model in with_another_kind(preset)]), chosen


@one_in(4)
@pytest.mark.parametrize(
    "number", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in range(DRAWS)]
)
def test_a_drawn_spec_is_refused_with_a_reason_or_written(number: int, tmp_path: Path) -> None:
    spec, chosen = drawn(number)
    end = exported_or_refused(spec.model_dump(mode="json"), chosen, tmp_path / "drawn")
    assert end == "exported" or len(end.removeprefix("refused: ")) > 20, end
