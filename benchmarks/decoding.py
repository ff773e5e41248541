"""SmolLM's shape in ONNX Runtime, steps and prompts, against onnxruntime-genai on its builder's file.

Each decoder step is reported as a percentage of the memory-bandwidth bound: the time to read all weights and the cache
once.  The peer's step includes choosing the token.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.checkpoints import SMOLLM, checkpoint
from benchmarks.peers import GENAI, MISSING, genai_build
from benchmarks.process import export, run
from benchmarks.result import Result
from benchmarks.side_by_side import THREADS, medians, running
from exporters.benchmark.process import OURS
from exporters.benchmark.traffic import weights_read
from exporters.benchmark.workload import Workload
from zoo.machine.bandwidth import measure_bandwidth

OPTIONS = {"fp32": [], "int4": ["--block-size", "128", "--head-precision", "int4"]}
"""Export options by precision, with the head in the peer's precision."""

BOUNDS = {"fp32": {"step": 1.0, "prompt": 1.2}, "int4": {"step": 1.15, "prompt": 1.3}}
"""Minimum speed relative to the peer, by precision and kind of call, at 1,024 tokens."""

SHORT, LONG = 128, 1024
TOKEN_BYTES = 30 * 2 * 3 * 64 * 4
"""Cache size per token: layers, keys and values, heads, head width, bytes per number."""

OUR_FILE, THEIR_FILE = "cpu", "genai"


def results() -> Iterator[Result]:
    """Compare speeds; bounds: steps 1.0 times the peer in fp32 and 1.15 in int4, prompts 1.2 and 1.3."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = checkpoint(SMOLLM, folder)
        for precision in BOUNDS:
            yield from _compared(precision, source, folder / precision)


def _compared(precision: str, source: Path, folder: Path) -> Iterator[Result]:
    stored = ["--precision", precision, *OPTIONS[precision], "--weights", str(source)]
    models = {OUR_FILE: (OURS, export(SMOLLM, "cpu", folder / OUR_FILE, "--logits", "last", *stored))}
    if GENAI.present:
        run(genai_build(source, precision, folder / THEIR_FILE))
        models[THEIR_FILE] = (GENAI.driver(), folder / THEIR_FILE)
    read = {name: weights_read(path / "model.onnx") for name, (_, path) in models.items()}
    bandwidth = measure_bandwidth(THREADS)
    with running(models) as workers:
        for past in (SHORT, LONG):
            times = medians(workers, Workload("step", (1,), past))
            shares = {
                name: (read[name] + past * TOKEN_BYTES) / bandwidth.read / seconds
                for name, seconds in times.items()
            }
            texts = {
                name: f"{1e3 * seconds:.1f} ms, {shares[name]:.0%} of the memory bound"
                for name, seconds in times.items()
            }
            yield _result(f"{precision}: step after {past} tokens", times, texts, BOUNDS[precision]["step"])
        times = medians(workers, Workload("prompt", (LONG,)))
        texts = {name: f"{seconds:.2f} s" for name, seconds in times.items()}
        yield _result(f"{precision}: prompt of {LONG} tokens", times, texts, BOUNDS[precision]["prompt"])


def _result(name: str, times: dict[str, float], texts: dict[str, str], bound: float) -> Result:
    theirs = f"{texts[THEIR_FILE]} with onnxruntime-genai" if THEIR_FILE in texts else MISSING
    ratio = times[THEIR_FILE] / times[OUR_FILE] if THEIR_FILE in times else None
    return Result(f"{SMOLLM}, cpu {name}", texts[OUR_FILE], theirs, ratio, bound, at_most=False)
