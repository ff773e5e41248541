"""Models that read samples: their frames, masks, checks, costs and exports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from exporters.export import export
from exporters.steps.options import ExportOptions
from specs.kinds.waveform import Waveform
from specs.language.load import load
from specs.model.model import Model
from tests.zoo.filled import random_model
from tests.zoo.tiny import moonshine, wav2vec2
from zoo.builder import assemble
from zoo.checks import check_behaviour, check_shapes
from zoo.drawing.reading import read
from zoo.reports.costs import costs

GATED = {"kind": "relative_bias", "buckets": 8, "max_distance": 5, "gated": True}


def gated() -> Model:
    data: dict[str, Any] = wav2vec2().model_dump()
    data["encoder"]["block"]["attention"]["position"] = GATED
    return Model.model_validate(data)


def over_time() -> Model:
    data = wav2vec2().model_dump()
    data["embedding"]["convolution_norm"] = "group"
    return Model.model_validate(data)


VARIANTS = {"masked": wav2vec2, "over time": over_time, "gated": gated}


def embedding_of(name: str) -> Waveform:
    spec = load(name)
    embedding = spec.embedding_of(spec.last_stack)
    assert isinstance(embedding, Waveform)
    return embedding


def test_frames_of_the_published_stem() -> None:
    embedding = embedding_of("wav2vec2-base-960h")
    assert (embedding.step, embedding.reach) == (320, 400)  # 20 and 25 ms
    assert not embedding.takes_mask
    assert embedding_of("wav2vec2-xls-r-300m").takes_mask
    assert [embedding.vector_count(samples) for samples in (399, 400, 719, 720, 16000)] == [0, 1, 1, 2, 49]
    assert all(embedding.vector_count(embedding.input_length(count)) == count for count in range(1, 9))


@pytest.mark.parametrize("name", VARIANTS)
def test_checks_pass(name: str) -> None:
    spec = VARIANTS[name]()
    results = {check.name: check.status for check in check_behaviour(spec).checks}
    assert "failed" not in results.values(), results
    assert results["padding"] == ("skipped" if name == "over time" else "passed")
    shapes = check_shapes(assemble(spec), spec)
    assert shapes.passed, shapes.problems
    stem = next(row for row in shapes.modules if row.path == "embedding.layers.0")
    assert stem.outputs == ("B x 4 x 2*T+1",)


def test_checks_of_an_encoder_decoder_pass() -> None:
    spec = moonshine()
    results = {check.name: check.status for check in check_behaviour(spec).checks}
    assert "failed" not in results.values(), results
    assert results["cross-attention"] == "passed"
    shapes = check_shapes(assemble(spec), spec)
    assert shapes.passed, shapes.problems
    stem = {row.path: row.outputs for row in shapes.modules if row.path.startswith("encoder_embedding.")}
    assert stem["encoder_embedding.filters"] == ("B x 6 x 2*S+3",)
    assert stem["encoder_embedding.layers.0"] == ("B x 10 x S+1",)


@pytest.mark.parametrize("make", [over_time, moonshine])
def test_a_mask_is_refused_where_the_norm_includes_padding(make: Callable[[], Model]) -> None:
    model: Any = assemble(make())
    encode = getattr(model, "encode", model)
    with pytest.raises(TypeError, match="takes no attention_mask"):
        encode(torch.zeros(1, 40, device="meta"), torch.ones(1, 40, device="meta"))


def test_the_mask_of_frames_counts_whole_frames() -> None:
    embedding: Any = assemble(wav2vec2()).embedding
    mask = (torch.arange(50) < torch.tensor([[50], [30], [29], [3], [0]])).to(torch.int64)
    frames, positions = embedding.mask_and_positions(torch.zeros(5, 50), mask)
    assert frames.sum(1).tolist() == [4, 2, 1, 0, 0]
    assert positions.tolist() == [[0, 1, 2, 3]]


def test_costs_are_polynomials_in_frames() -> None:
    stage = costs(load("wav2vec2-base-960h")).stages["forward"]
    assert set(stage.total.symbols) == {"B", "T"}
    outputs = 64 * 50 + 15  # of the first convolution, one for 5 samples
    assert stage.modules["embedding.layers.0.convolution"].at(B=1, T=50) == 2 * 512 * 10 * outputs


def test_costs_of_an_encoder_decoder_are_polynomials_in_the_frames_of_its_encoder() -> None:
    stages = costs(moonshine()).stages
    assert set(stages["encode"].total.symbols) == {"B", "S"}
    filters = 2 * (50 + 1) + 1  # times of the first convolution
    assert stages["encode"].modules["encoder_embedding.filters"].at(B=1, S=50) == 2 * 6 * 10 * filters
    assert set(stages["step"].total.symbols) == {"B", "P", "S"}


def test_a_drawing_has_the_stem() -> None:
    titles = [part.title for part in read(load("wav2vec2-base-960h")).parts()]
    assert titles.count("Convolution") == 7
    assert "Convolutional positions" in titles
    titles = [part.title for part in read(moonshine()).parts()]
    assert titles[:4] == ["Convolution", "Norm of the recording", "Convolution", "Convolution"]


def test_training_reaches_every_weight() -> None:
    spec = gated()
    model = random_model(spec)
    model(torch.randn(2, 60)).logits.square().sum().backward()
    assert not [name for name, parameter in model.named_parameters() if parameter.grad is None]


@pytest.mark.parametrize(("precision", "target"), [("fp16", "cpu"), ("fp16", "cuda"), ("int8", "cpu")])
@pytest.mark.slow
def test_other_precisions_and_targets(precision: str, target: str, tmp_path: Path) -> None:
    export(gated(), tmp_path / "out", ExportOptions.of(precision=precision, target=target))


@pytest.mark.slow
@pytest.mark.parametrize("make", [wav2vec2, moonshine])
def test_export_through_torch(make: Callable[[], Model], tmp_path: Path) -> None:
    export(make(), tmp_path / "out", ExportOptions(via="torch"))


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "target"), [("fp16", "cpu"), ("fp16", "cuda"), ("int8", "cpu")])
def test_exports_of_an_encoder_decoder(precision: str, target: str, tmp_path: Path) -> None:
    export(moonshine(), tmp_path / "out", ExportOptions.of(precision=precision, target=target))
