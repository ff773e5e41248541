"""Exports for CUDA on a GPU: encoders, steps and prompts, beside PyTorch in eager mode and compiled.

Each step is reported as a share of the memory-bandwidth bound, as measured on that GPU.  Groups that have been measured
are kept in ``build/benchmarks/gpu`` and not measured again; with UNTIL=<Unix time> in the environment, no group begins
after that time, and the next run continues.  With GPU_TESTS_ON=cpu, small models run without a GPU, which shows that the
benchmark works.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.result import Result
from exporters.benchmark.bench import BenchmarkReport, Timing, bench
from exporters.benchmark.variant import BenchModel, Runtime, VariantChoice, variants
from exporters.benchmark.workload import WorkloadGrid
from exporters.target.providers import on_provider
from specs.language.load import load

KEPT = Path("build/benchmarks/gpu")
DEVICE = os.environ.get("GPU_TESTS_ON", "cuda")
SECONDS, THREADS = 1.0, 8

FASTER = 1.0
"""The least speed relative to PyTorch."""

SHARE = 0.7
"""The least share of the memory-bandwidth bound of a step."""


@dataclass(frozen=True)
class Group:
    """A model, and the sizes, precisions and PyTorch modes that it is timed in."""

    model: str
    precisions: tuple[str, ...]
    grid: WorkloadGrid
    against: tuple[Runtime, ...] = ("eager", "compiled")

    @property
    def name(self) -> str:
        """A name for files."""
        sizes = [
            *self.precisions,
            *map(str, self.grid.batches),
            *self.grid.lengths,
            *map(str, self.grid.pasts),
        ]
        return "_".join([self.model, *sizes])


PAST = (128, 1024, 8192)


def _decoder(model: str, batch: int, past: tuple[int, ...] = PAST, *, prompt: str = "1024") -> Group:
    """Steps and a prompt; int4 besides the half precisions where a model is large enough to be read in 4 bits."""
    precisions = ("fp16",) if model == "gpt2" else ("fp16", "bf16", "int4")
    return Group(model, precisions, WorkloadGrid((batch,), (prompt,), past))


GROUPS = (
    Group("bert-base", ("fp16",), WorkloadGrid((1, 8, 64), ("128", "16-128"))),
    _decoder("gpt2", 1, (128, 896), prompt="896"),
    _decoder("gpt2", 16, (128, 896), prompt="896"),
    _decoder("llama-3.2-1b", 1),
    _decoder("llama-3.2-1b", 16),
    _decoder("llama-3.1-8b", 1),
    _decoder("llama-3.1-8b", 16, (128, 1024)),
    Group("t5-base", ("fp16",), WorkloadGrid((1, 16), ("128",), (128,))),
    Group("olmoe-1b-7b", ("fp16", "int4"), WorkloadGrid((1, 8), ("1024",), (128, 1024)), ("eager",)),
)

WITHOUT_GPU = (
    Group("tiny-gpt", ("fp32",), WorkloadGrid((1, 2), ("16",), (8,)), ("eager",)),
    Group("bert-tiny", ("fp32",), WorkloadGrid((1, 2), ("16", "4-16")), ("eager",)),
)


def results() -> Iterator[Result]:
    """Compare speeds; bounds: as fast as PyTorch, and steps in fp16, bf16 and int4 at 0.7 of the memory bound."""
    on_provider(DEVICE)
    until = float(os.environ.get("UNTIL", "inf"))
    KEPT.mkdir(parents=True, exist_ok=True)
    groups = GROUPS if DEVICE == "cuda" else WITHOUT_GPU
    for number, group in enumerate(groups, 1):
        kept = KEPT / f"{DEVICE}-{group.name}.json"
        if not kept.is_file():
            if time.time() > until:
                print(
                    f"NOT RUN: {len(groups) - number + 1} of {len(groups)} groups; run it again to continue"
                )
                return
            measured = [asdict(result) for result in _measured(group)]
            kept.write_text(json.dumps(measured, indent=1), encoding="utf-8")
        yield from (Result(**data) for data in json.loads(kept.read_text(encoding="utf-8")))


def _measured(group: Group) -> Iterator[Result]:
    target = "cuda" if DEVICE == "cuda" else "cpu"
    spec = load(group.model, ())
    logits = "last" if spec.architecture == "decoder" else "all"
    choice = VariantChoice((target,), group.precisions, logits, group.against)
    with tempfile.TemporaryDirectory() as folder:
        exported = list(variants([BenchModel(spec.name, spec)], choice, Path(folder), lambda stage: None))
        report = bench(exported, group.grid, THREADS, SECONDS, DEVICE, lambda stage: None)
    for loaded in report.loaded:
        if loaded.fault:
            print(f"{loaded.variant.label}: {loaded.fault}")
    for timings in report.timings:
        yield from _compared(report, timings)


def _compared(report: BenchmarkReport, timings: list[Timing]) -> Iterator[Result]:
    """Compare each export with PyTorch in its precision (fp16 for quantized exports), and with the memory bound."""
    pytorch: dict[str, Timing] = {}
    for timing in timings:
        if timing.variant.runtime != "onnxruntime":
            best = pytorch.get(timing.variant.precision)
            if best is None or timing.median < best.median:
                pytorch[timing.variant.precision] = timing
    for timing in timings:
        if timing.variant.runtime == "onnxruntime":
            beside = pytorch.get(timing.variant.precision) or next(iter(pytorch.values()), None)
            yield from _rows(report, timing, beside)


def _rows(report: BenchmarkReport, timing: Timing, beside: Timing | None) -> Iterator[Result]:
    name = f"{timing.variant.label}, {timing.workload.label}"
    took = _told(timing)
    if beside is None:
        yield Result(name, took, "PyTorch did not run", None, FASTER, at_most=False)
    else:
        ratio = beside.median / timing.median
        yield Result(name, took, f"{_told(beside)}, {beside.variant.label}", ratio, FASTER, at_most=False)
    if (share := report.bound_share(timing)) is not None:
        bound = f"{report.bandwidth.read / 1e9:,.0f} GB/s, memory bound"
        yield Result(name, took, bound, share, SHARE if DEVICE == "cuda" else 0.0, at_most=False)


def _told(timing: Timing) -> str:
    return f"{1e3 * timing.median:.2f} ms"
