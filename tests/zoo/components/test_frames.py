"""Models that read spectrograms of any length through conformer blocks: their frames, masks, checks, costs and exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from exporters.export import export
from exporters.steps.options import ExportOptions
from specs.kinds.frames import SubsampledSpectrogram
from specs.kinds.norm import BatchNorm as BatchNormSpec
from specs.language.load import load
from specs.model.model import Model
from tests.zoo.filled import random_model
from tests.zoo.tiny import bert as tiny_bert
from tests.zoo.tiny import parakeet
from zoo.builder import assemble
from zoo.checks import check_behaviour, check_shapes
from zoo.components.norm import BatchNorm
from zoo.context import BuildContext
from zoo.drawing.reading import read
from zoo.reports.costs import costs


def test_frames_of_the_published_stem() -> None:
    embedding = load("parakeet-ctc-0.6b").embedding
    assert isinstance(embedding, SubsampledSpectrogram)
    assert (embedding.step, embedding.bins_left) == (8, 10)
    assert [embedding.vector_count(frames) for frames in (0, 1, 8, 9, 100)] == [0, 1, 1, 2, 13]
    assert all(embedding.vector_count(embedding.input_length(count)) == count for count in range(1, 9))
    assert embedding.vector_names(3, 0.01) == ["0.00s", "0.08s", "0.16s"]


def test_checks_pass() -> None:
    spec = parakeet()
    results = {check.name: check.status for check in check_behaviour(spec).checks}
    assert set(results.values()) == {"passed", "skipped"}, results
    assert [name for name, status in results.items() if status == "skipped"] == ["order"]
    shapes = check_shapes(assemble(spec), spec)
    assert shapes.passed, shapes.problems
    stem = {row.path: row.outputs for row in shapes.modules}
    assert stem["embedding.layers.0"] == ("B x 4 x 2*T-1 x 3",)
    assert stem["embedding.layers.1"] == ("B x 4 x T x 2",)


def test_the_mask_of_vectors_counts_begun_steps() -> None:
    embedding: Any = assemble(parakeet()).embedding
    mask = (torch.arange(13) < torch.tensor([[13], [9], [8], [1], [0]])).to(torch.int64)
    vectors, positions = embedding.mask_and_positions(torch.zeros(5, 13, 6), mask)
    assert vectors.sum(1).tolist() == [4, 3, 2, 1, 0]
    assert positions.tolist() == [[0, 1, 2, 3]]


def test_costs_are_polynomials_in_vectors() -> None:
    stage = costs(load("parakeet-ctc-0.6b")).stages["forward"]
    assert set(stage.total.symbols) == {"B", "T"}
    frames = 4 * 50 - 3  # of the first convolution, whose 40 bins are half of those of the spectrogram
    assert stage.modules["embedding.layers.0.convolution"].at(B=1, T=50) == 2 * 256 * 9 * frames * 40


def test_a_drawing_has_the_stem_and_the_branches() -> None:
    titles = [part.title for part in read(load("parakeet-ctc-0.6b")).parts()]
    assert titles.count("Depthwise convolution and matrix") == 2
    assert titles.count("Feed-forward") == 2
    assert {"Gated convolution", "Relative sinusoidal"} <= set(titles)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "precision"), [("portable", "int8"), ("cpu", "fp32"), ("cpu", "int4"), ("cuda", "fp16")]
)
def test_exports_are_verified(target: str, precision: str, tmp_path: Path) -> None:
    width = {"d_model": 32, "embedding": {**parakeet().embedding.model_dump(), "scale": 1.0}}
    export(parakeet(**width), tmp_path / "out", ExportOptions.of(target=target, precision=precision))


def test_batch_norm_is_that_of_torch() -> None:
    context = BuildContext(d_model=5, context_length=None, causal=False, cross=False)
    ours = BatchNorm(BatchNormSpec(momentum=0.25), context)
    theirs = torch.nn.BatchNorm1d(5, momentum=0.25)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(generator=generator)
        for own, other in (
            ("weight", "weight"),
            ("bias", "bias"),
            ("mean", "running_mean"),
            ("variance", "running_var"),
        ):
            getattr(ours, own).copy_(getattr(theirs, other))
    for training in (True, True, False):
        x = torch.randn(3, 7, 5, generator=generator) * 2 + 1
        found, wanted = ours.train(training)(x), theirs.train(training)(x.transpose(1, 2)).transpose(1, 2)
        torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(ours.mean, theirs.running_mean)
    torch.testing.assert_close(ours.variance, theirs.running_var)


def test_random_weights_leave_a_batch_norm_the_identity() -> None:
    spec = parakeet()
    model: Any = random_model(spec)
    norm = model.encoder.blocks[0].convolution.norm
    assert norm.mean.tolist() == [0.0] * 8
    assert norm.variance.tolist() == [1.0] * 8


def of_frames() -> Model:
    """A wav2vec2-BERT of two layers."""
    data: dict[str, Any] = parakeet().model_dump()
    data["position"] = {"kind": "relative_key", "before": 3, "after": 1}
    data["embedding"] = {"kind": "frames", "width": 6, "norm": {"kind": "layer_norm"}}
    data["encoder"]["block"]["convolution"] |= {"causal": True, "kernel": 4, "norm": {"kind": "layer_norm"}}
    return Model.model_validate(data)


def test_checks_of_frames_pass() -> None:
    results = {check.name: check.status for check in check_behaviour(of_frames()).checks}
    assert [name for name, status in results.items() if status != "passed"] == ["order"], results
    assert check_shapes(assemble(of_frames()), of_frames()).passed
    titles = [part.title for part in read(of_frames()).parts()]
    assert titles[:2] == ["LayerNorm", "Projection"]
    assert "Relative key" in titles


@pytest.mark.slow
@pytest.mark.parametrize(("target", "precision"), [("portable", "fp32"), ("cpu", "int8"), ("cuda", "fp16")])
def test_exports_of_frames_are_verified(target: str, precision: str, tmp_path: Path) -> None:
    export(of_frames(), tmp_path / "out", ExportOptions.of(target=target, precision=precision))


def of_tokens() -> Model:
    """A conformer of two layers that reads tokens, whose padding may be anywhere."""
    block = parakeet().model_dump()["encoder"]["block"]
    return tiny_bert(position={"kind": "relative_sinusoidal"}, encoder={"layers": 2, "block": block})


def test_padding_of_tokens_enters_no_convolution() -> None:
    results = {check.name: check.status for check in check_behaviour(of_tokens()).checks}
    assert set(results.values()) == {"passed"}, results
    assert "padding side" in results


@pytest.mark.slow
@pytest.mark.parametrize("target", ["portable", "cpu"])
def test_exports_of_tokens_are_verified(target: str, tmp_path: Path) -> None:
    export(of_tokens(), tmp_path / "out", ExportOptions(target=target))
