"""From a module to an ONNX graph in memory, against ``torch.onnx.export`` of the same model with its cache."""

from __future__ import annotations

import logging
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.result import Result


def seconds(function: Callable[[], Any], runs: int) -> float:
    """The median time of a call, after one warm-up."""
    function()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def trace(layers: int) -> Callable[[], Any]:
    """Tracing and lowering GPT-2 of some depth, with its cache."""
    from exporters.graph.trace import trace_and_lower
    from exporters.target.targets import TARGETS
    from specs.language.load import load
    from zoo.builder import assemble
    from zoo.tracing.tasks import tasks

    spec = load("gpt2", [f"decoder.layers={layers}"])
    model = assemble(spec)
    return lambda: [trace_and_lower(model, task, TARGETS["portable"]) for task in tasks(model, spec)]


def torch_export() -> Callable[[], Any]:
    """``torch.onnx.export`` of an equal module: the same task of the same model, with random weights."""
    import torch

    from exporters.steps.via_torch.export import program_of
    from specs.language.load import load
    from zoo.builder import assemble
    from zoo.tracing.tasks import tasks
    from zoo.weights.materialize import materialize
    from zoo.weights.random import RandomWeights

    torch.manual_seed(0)
    spec = load("gpt2")
    model = assemble(spec)
    materialize(model, RandomWeights(model, spec))
    (task,) = tasks(model, spec)
    return lambda: program_of(model, task)


def results() -> Iterator[Result]:
    """Compare with torch.onnx.export; bounds: 20 times as fast, and 96 layers within 10 times the time of 12."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    ours, deep, theirs = seconds(trace(12), 5), seconds(trace(96), 3), seconds(torch_export(), 1)
    baseline = f"{theirs:.1f} s with torch.onnx.export"
    yield Result(
        "trace and emit gpt2 with cache", f"{ours:.3f} s", baseline, theirs / ours, 20, at_most=False
    )
    yield Result("trace and emit 96 layers", f"{deep:.3f} s", f"{ours:.3f} s for 12 layers", deep / ours, 10)
