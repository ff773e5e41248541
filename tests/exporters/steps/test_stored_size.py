"""The size that is told of a file is the size that is written, in every precision and for every target."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exporters.data.data_file import PAGE, total_bytes
from exporters.graph.precisions import PRECISIONS
from exporters.steps.graphs import Graphs
from exporters.steps.options import ExportOptions
from exporters.steps.plan import Plan
from exporters.steps.stored_size import stored_sizes
from exporters.target.targets import TARGETS
from specs.base.errors import UserError
from specs.language.load import load
from specs.model.model import Model
from tests.exporters.models import written
from tests.strategies import Data, model_data

NARROW = ["d_model=64", "vocab_size=5000", "context_length=256"]
EXPERTS = [
    *NARROW, "decoder.layers=3", "decoder.block.attention.heads=4", "decoder.block.attention.kv_heads=2",
    "decoder.block.attention.head_dim=16", "decoder.block.feed_forward.expert.hidden=96",
]  # fmt: skip
SINKS = [
    *NARROW, "decoder.layers=[{pattern: [{use: local}, {}], repeat: 2}]", "decoder.block.attention.heads=4",
    "decoder.block.attention.kv_heads=2", "decoder.block.attention.head_dim=16",
    "decoder.block.feed_forward.expert.hidden=96",
]  # fmt: skip
MIXTURES = {
    "mixtral": lambda: load("mixtral-8x7b", EXPERTS),
    "qwen3": lambda: load("qwen3-30b-a3b", EXPERTS),
    "gpt-oss": lambda: load("gpt-oss-20b", SINKS),
}
MODELS = {
    **MIXTURES,
    "decoder": lambda: load("gpt2", [*NARROW, "decoder.layers=5", "decoder.block.attention.heads=4"]),
    "rotary": lambda: load("smollm2-135m", ["decoder.layers=3", "vocab_size=5000"]),
    "shared": lambda: load("albert-base-v2", ["vocab_size=3000"]),
    "two stacks": lambda: load("t5-small", ["vocab_size=3000", "encoder.layers=3", "decoder.layers=2"]),
    "images": lambda: load("vit-base-16", ["encoder.layers=2"]),
    "two kinds": lambda: load("gemma2-2b", ["decoder.layers=[{pattern: [{use: local}, {}], repeat: 2}]", "vocab_size=3000"]),
}  # fmt: skip


def off(spec: Model, target: str, precision: str, told: int) -> float:
    """How far the size that is told is from the layout's, relative to it; a page more or less does not count."""
    size = total_bytes(
        Graphs.of(Plan.make(spec, ExportOptions.of(target=target, precision=precision))).regions
    )
    return max(0, abs(told - size) - PAGE) / size


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", MODELS)
def test_sizes_are_those_of_the_layout(name: str, target: str) -> None:
    spec = MODELS[name]()
    for precision, size in stored_sizes(spec, target).items():
        try:
            assert off(spec, target, precision, size) < 0.02, precision
        except ValueError:  # TensorRT's caches need a context length
            assert (name, target) == ("two stacks", "tensorrt")


def cases() -> list[Any]:
    """Every mixture, target and precision; one of them quick."""
    every = itertools.product(MIXTURES, ("portable", "cpu"), PRECISIONS)
    quick = ("mixtral", "portable", "int8")
    return [pytest.param(*each, marks=() if each == quick else pytest.mark.slow) for each in every]


@pytest.mark.parametrize(("name", "target", "precision"), cases())
def test_a_mixture_takes_what_is_told(name: str, target: str, precision: str, tmp_path: Path) -> None:
    spec, told = MIXTURES[name](), stored_sizes(MIXTURES[name](), target)[precision]
    result = written(spec, tmp_path / "x", target=target, precision=precision, verify=False)
    assert told == pytest.approx(result.files["model.onnx.data"], rel=0.02)
    assert (tmp_path / "x" / "model.onnx.data").stat().st_size == result.files["model.onnx.data"]


@pytest.mark.slow
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(model_data(), st.sampled_from(list(TARGETS)))
def test_sizes_of_drawn_models_are_those_of_the_layout(data: Data, target: str) -> None:
    spec = Model.model_validate(data)
    for precision, size in stored_sizes(spec, target).items():
        try:
            assert off(spec, target, precision, size) < 0.02, precision
        except UserError:  # which no export takes
            continue


@pytest.mark.parametrize("name", ["gpt2", "t5-small"])
def test_sizes_of_a_model_that_is_traced_in_each_dtype_are_the_same(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plugin's component may depend on the dtype, so that its graphs do not follow from those in float16."""
    sizes = stored_sizes(load(name, ["d_model=384"]), "portable")
    monkeypatch.setattr("exporters.steps.stored_size.has_plugin", lambda spec: True)
    monkeypatch.setattr("zoo.core.remembering.has_plugin", lambda spec: True)  # so that nothing is remembered
    assert stored_sizes(load(name, ["d_model=384"]), "portable") == sizes
