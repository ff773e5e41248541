"""T5-small in ONNX Runtime: greedy tokens a second, encoder included, against optimum on its own files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.checkpoints import checkpoint
from benchmarks.peers import MISSING, OPTIMUM, optimum_export
from benchmarks.process import export, run
from benchmarks.result import Result
from benchmarks.side_by_side import medians, running
from exporters.benchmark.process import OURS
from exporters.benchmark.workload import Workload

PRESET = "t5-small"
WORK = Workload("generate", (32,), new=64)
BOUNDS = {"fp32": 1.0, "int8": 1.8}
"""Minimum speed relative to optimum in fp32."""


def results() -> Iterator[Result]:
    """Compare tokens per second; bounds: 1.0 times optimum in fp32, 1.8 times in int8."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = checkpoint(PRESET, folder)
        models = {}
        for precision in BOUNDS:
            options = ["--precision", precision, "--weights", str(source)]
            models[precision] = (OURS, export(PRESET, "cpu", folder / precision, *options))
        if OPTIMUM.present:
            run(optimum_export(source, "text2text-generation-with-past", folder / "optimum"))
            models["optimum"] = (OPTIMUM.driver(), folder / "optimum")
        with running(models) as workers:
            rates = {name: WORK.new / seconds for name, seconds in medians(workers, WORK).items()}
        theirs = rates.get("optimum")
        for precision, bound in BOUNDS.items():
            yield Result(
                f"{PRESET}, {WORK.label}, cpu {precision}: tokens",
                f"{rates[precision]:.0f} a second",
                MISSING if theirs is None else f"{theirs:.0f} a second with optimum in fp32",
                None if theirs is None else rates[precision] / theirs,
                bound,
                at_most=False,
            )
