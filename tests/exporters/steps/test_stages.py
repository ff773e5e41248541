"""Each stage of an export makes a value of its own, and writes into no earlier one."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import pytest
import torch

from exporters.data.stored_scales import with_scales
from exporters.export import export
from exporters.graph.quantization.cache_scales import CacheScale
from exporters.graph.quantization.cache_scheme import CACHE_FORMATS
from exporters.rounding.calibrated_weights import CalibratedWeights, Rounding
from exporters.rounding.quantized_cache.calibrate import calibrated_scales, random_case
from exporters.steps.graphs import Graphs
from exporters.steps.manifest import Export
from exporters.steps.options import ExportOptions
from exporters.steps.plan import Plan
from exporters.steps.request import Request
from exporters.steps.verify import Verified
from exporters.steps.weights import Weights
from exporters.verification import verified_model
from tests.zoo.tiny import BLOCK, gpt2
from zoo.builder import assemble
from zoo.core.tensors import weight_count
from zoo.weights.blocks import Blocks
from zoo.weights.random import RandomWeights

OPTIONS = ExportOptions(target="cpu", cache_precision="int8")


@pytest.mark.parametrize("stage", [Request, Plan, Graphs, Weights, Verified, Export])
def test_a_stage_is_frozen(stage: Any) -> None:
    value = object.__new__(stage)
    for field in fields(stage):
        with pytest.raises(FrozenInstanceError):
            setattr(value, field.name, None)


def test_calibrating_a_cache_changes_no_graph() -> None:
    plan = Plan.make(gpt2(d_model=64), OPTIONS)
    graphs, source = Graphs.of(plan), RandomWeights(plan.model, plan.spec)
    cache = CACHE_FORMATS["int8"]
    assert cache is not None
    scales = calibrated_scales(cache, plan.spec, source, random_case(plan.spec), lambda stage: None)
    declared = [region.content for region in graphs.regions.values()]
    filled = with_scales(graphs.regions, scales)
    assert [region.content for region in graphs.regions.values()] == declared
    assert all(content.values is None for content in declared if isinstance(content, CacheScale))
    found = {name: region.content for name, region in filled.items()}
    for path, (keys, values) in scales.items():
        for part, tensor in (("key", keys), ("value", values)):
            content = found[f"{path}.{part}_scale"]
            assert isinstance(content, CacheScale)
            assert content.values is tensor
    places = {name: (region.offset, region.length) for name, region in graphs.regions.items()}
    assert {name: (region.offset, region.length) for name, region in filled.items()} == places


def test_weights_without_some_codes_are_another_source(tmp_path: Path) -> None:
    spec = gpt2(d_model=64)
    model = assemble(spec)
    name = "decoder.blocks.0.attention.output.weight"
    calibrated = CalibratedWeights(RandomWeights(model, spec), tmp_path)
    blocks = Blocks(4, 32)
    matrix = torch.cat([*calibrated.pieces(name)]).view(64, 64)
    calibrated.keep(name, Rounding(blocks, torch.float32), blocks.quantize(matrix))
    assert calibrated.codes(name) is not None
    assert calibrated.without({name}).codes(name) is None
    assert calibrated.codes(name) is not None
    assert calibrated.calibrated == [name]


def test_a_large_graph_without_weights_may_have_a_quantized_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = gpt2(d_model=64, decoder={"layers": 6, "block": BLOCK})
    monkeypatch.setattr(verified_model, "QUICK", 4 * weight_count(assemble(spec)) - 1)
    result = export(spec, tmp_path / "x", ExportOptions(target="cpu", cache_precision="int8", weights="none"))
    assert result.verification is not None
    assert "decoder layers, with random weights" in result.verification.subject
    assert result.manifest.cache is not None
    assert result.manifest.cache.precision == "int8"
