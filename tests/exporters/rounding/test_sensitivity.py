"""Estimated costs of groups against the losses that are measured by running the model with each group rounded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from torch import Tensor

from exporters.exported.model_source import model_source
from exporters.quality.blame import blame
from exporters.quality.inputs import representative
from exporters.quality.judge import cases_of
from exporters.rounding import sensitivity
from exporters.rounding.sensitivity import sensitivities
from exporters.runtime.text import find_text
from tests.exporters.quality import checkpoints
from tests.zoo.filled import stored_model
from zoo.core.tensors import weight_tensors
from zoo.weights.blocks import Blocks

BLOCKS = Blocks(4, 32)


@pytest.mark.slow
@pytest.mark.parametrize("make", [checkpoints.llama, checkpoints.bert, checkpoints.t5])
def test_estimates_agree_with_exact_costs(
    make: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sensitivity, "DRAWS", 24)
    origin = make(tmp_path)
    spec = model_source(str(origin)).spec
    model = stored_model(spec, origin)
    cases = list(
        cases_of(spec, representative(spec, None, find_text(origin, None, needed=False)).calibration)
    )
    held = {
        name: values
        for name, values in weight_tensors(model)
        if values.dim() == 2 and ".blocks." in name and "position" not in name
    }
    stored = {name: BLOCKS.restore(BLOCKS.quantize(values), values.shape[1]) for name, values in held.items()}
    changes: dict[tuple[str, ...], dict[str, Tensor]] = {
        (name,): {name: stored[name] - values.detach()} for name, values in held.items()
    }
    found = sensitivities(spec, model, cases, changes)
    exact = {each.part: each.cost for each in blame(spec, model, stored.items(), cases, lambda name: name)}
    dear = [name for name, cost in exact.items() if cost > 0.05 * max(exact.values())]
    assert len(dear) > 5
    for name in dear:
        assert found[name,] == pytest.approx(exact[name], rel=0.5)
    assert sum(found.values()) == pytest.approx(sum(exact.values()), rel=0.2)
    assert {(name,) for name, cost in exact.items() if cost == 0} == {
        key for key, cost in found.items() if cost == 0
    }  # what the outputs do not depend on costs nothing


@pytest.mark.slow
def test_costs_of_joined_weights_are_those_of_one_change(tmp_path: Path) -> None:
    """The errors of two weights of a group may cancel out."""
    origin = checkpoints.llama(tmp_path)
    spec = model_source(str(origin)).spec
    model = stored_model(spec, origin)
    cases = list(
        cases_of(spec, representative(spec, None, find_text(origin, None, needed=False)).calibration)
    )
    name = "decoder.blocks.0.attention.output.weight"
    change = 1e-3 * dict(weight_tensors(model))[name].detach()
    once = sensitivities(spec, model, cases, {(name,): {name: change}})
    twice = sensitivities(spec, model, cases, {(name,): {name: 2 * change}})
    assert twice[name,] == pytest.approx(4 * once[name,], rel=1e-3)
