"""What is timed, and what a step must read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from exporters.benchmark.exported_subject import ExportedSubject
from exporters.benchmark.process import WorkerError, started
from exporters.benchmark.torch_subject import TorchSubject
from exporters.benchmark.traffic import weights_read
from exporters.benchmark.worker import TimedModel
from exporters.benchmark.workload import Workload, WorkloadGrid
from specs.base.errors import UserError
from specs.model.model import Model
from tests.exporters.models import written
from tests.thinned import one_in
from tests.zoo.tiny import bert, gpt2, t5, vit, wav2vec2, whisper
from zoo.reports.parameters import parameter_report

SIZES = WorkloadGrid(batches=(1, 3), lengths=("4", "2-6"), pasts=(1, 8), new=4)


@pytest.mark.parametrize(
    ("spec", "labels"),
    [
        (bert(), ["encode 1 x 4", "encode 1 x 6", "encode 3 x 4", "encode 3 x 2-6"]),
        (gpt2(), ["prompt 1 x 4", "prompt 1 x 6", "prompt 3 x 4", "prompt 3 x 2-6",
                  "step 1 @ 1", "step 1 @ 8", "step 3 @ 1", "step 3 @ 8",
                  "generate 1 x 4 + 4", "generate 1 x 6 + 4", "generate 3 x 4 + 4", "generate 3 x 2-6 + 4"]),
    ],
)  # fmt: skip
def test_every_size_is_timed(spec: Model, labels: list[str]) -> None:
    assert [work.label for work in SIZES.workloads(spec)] == labels


def test_a_range_spreads_the_lengths_of_a_batch() -> None:
    (work,) = WorkloadGrid(batches=(3,), lengths=("2-6",)).workloads(bert())
    assert (work.lengths, work.batch, work.tokens) == ((6, 4, 2), 3, 12)


def test_sizes_that_are_not_given_fit_the_model() -> None:
    assert [work.label for work in WorkloadGrid().workloads(bert())] == ["encode 1 x 10"]
    assert [work.label for work in WorkloadGrid().workloads(gpt2())] == ["prompt 1 x 9", "step 1 @ 9"]
    assert [work.label for work in WorkloadGrid().workloads(t5())] == ["prompt 1 x 128", "step 1 @ 128"]
    assert [work.label for work in WorkloadGrid().workloads(vit())] == ["encode 1 x 5"]
    assert [work.label for work in WorkloadGrid((2,)).workloads(wav2vec2())] == ["encode 2 x 128"]


@pytest.mark.parametrize(
    ("spec", "grid", "message"),
    [
        (bert(), WorkloadGrid(lengths=("11",)), "lengths must fit the context of tiny-bert\n  value: 11\n  Use 10 or less."),
        (gpt2(), WorkloadGrid(lengths=("10",)), "lengths must fit the context of tiny-gpt2\n  value: 10\n  Use 9 or less."),
        (gpt2(), WorkloadGrid(lengths=("3",), pasts=(10,)), "pasts must fit the context of tiny-gpt2\n  value: 10\n  Use 9 or less."),
        (gpt2(), WorkloadGrid(lengths=("3",), pasts=(3,), new=8), "new_tokens must fit the context of tiny-gpt2\n  value: 8\n  Use 7 or less"),
        (bert(), WorkloadGrid(lengths=("6-2",)), "lengths must be tokens, or a range of them\n  value: '6-2'\n  Use 128 or 16-128."),
        (bert(), WorkloadGrid(lengths=("0",)), "lengths must be tokens, or a range of them\n  value: '0'\n"),
        (bert(), WorkloadGrid(lengths=("x",)), "lengths must be tokens, or a range of them\n  value: 'x'\n"),
        (vit(), WorkloadGrid(lengths=("4",)), "lengths does not apply to tiny-vit, whose inputs have one size\n  value: 4\n  Remove"),
        (wav2vec2(), WorkloadGrid(lengths=("2-6",)), "lengths must be single numbers for tiny-wav2vec2, whose recordings are timed without padding\n  value: 2-6\n"),
        (whisper(), WorkloadGrid(), "tiny-whisper cannot be timed: zoo bench draws the inputs of encoders and of decoders of tokens alone\n"
         "  value: encoder-decoder, inputs input_features, input_ids\n  Export it and time zoo run"),
        (gpt2(head={"kind": "none"}), WorkloadGrid(),
         "Timing tiny-gpt2 needs a head of kind language_modeling\n  value: decoder, head none\n  Set head.kind=language_modeling."),
    ],
)  # fmt: skip
def test_sizes_and_models_that_cannot_be_timed(spec: Model, grid: WorkloadGrid, message: str) -> None:
    with pytest.raises(UserError) as error:
        grid.workloads(spec)
    assert message in str(error.value)


@one_in(3)
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("make", [gpt2, t5])
def test_a_step_reads_all_weights_but_tables_that_it_picks_rows_of(
    tmp_path: Path, make: Any, tied: bool
) -> None:
    """Counted in the graph, in PyTorch's modules, and in the table of parameters."""
    spec = make(d_model=32, head={"kind": "language_modeling", "tie_embeddings": tied})
    written(spec, tmp_path / "out", verify=False)
    work = Workload("step", (4, 4), past=6)
    subjects = (
        ExportedSubject(tmp_path / "out", "cpu", 1),
        TorchSubject(spec, "fp32", "cpu", 1, compiled=False),
    )
    for subject in subjects:
        subject.call(work)()
    cached, pytorch = (subject.bytes_read(work) for subject in subjects)
    last = "decoder_model.onnx" if make is t5 else "model.onnx"
    assert cached is not None
    assert cached == 4 * 2 * spec.d_model * 2 * 2 * (6 + (4 if make is t5 else 0))
    found = cached + weights_read(tmp_path / "out" / last)
    decoder = parameter_report(spec).module("decoder").parameters
    head = spec.vocab_size * spec.d_model
    weights = 4 * (decoder + head)
    if make is t5:  # of cross-attention, keys and values are projected with the encoder
        weights -= 4 * 2 * 2 * spec.d_model * spec.d_model
    assert found == pytest.approx(weights + cached, rel=0.02)
    assert pytorch == pytest.approx(found, rel=0.02)


def test_an_encoder_has_no_bound(tmp_path: Path) -> None:
    written(bert(), tmp_path / "out", verify=False)
    assert ExportedSubject(tmp_path / "out", "cpu", 1).bytes_read(Workload("encode", (4,))) is None
    assert weights_read(tmp_path / "out" / "model.onnx") > 0


@pytest.mark.parametrize("make", [bert, gpt2, t5, vit, wav2vec2])
def test_every_workload_runs_on_exports_and_on_pytorch(tmp_path: Path, make: Any) -> None:
    spec = make()
    written(spec, tmp_path / "out", verify=False)
    subjects: list[TimedModel] = [
        ExportedSubject(tmp_path / "out", "cpu", 1),
        TorchSubject(spec, "fp32", "cpu", 1, compiled=False),
    ]
    sizes = replace(SIZES, lengths={vit: (), wav2vec2: ("3", "9")}.get(make, SIZES.lengths))
    for work in sizes.workloads(spec):
        for subject in subjects:
            call = subject.call(work)
            call()
            call()


@pytest.mark.slow
def test_a_failed_worker_reports_the_reason() -> None:
    with (
        started() as worker,
        pytest.raises(WorkerError, match=r"^gone is not an export \(no export\.json\)$"),
    ):
        worker.ask({"runtime": "onnxruntime", "path": "gone", "provider": "cpu", "threads": 1})


def test_a_dead_worker_is_reported() -> None:
    with started() as worker:
        worker._process.kill()
        with pytest.raises(WorkerError, match=r"its process ended with status -9 \(out of memory\?\)"):
            worker.ask({"runtime": "onnxruntime", "path": "gone", "provider": "cpu", "threads": 1})
