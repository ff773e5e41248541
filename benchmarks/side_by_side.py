"""Running models timed in turn: ours and the peers', each in a process of its own."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

from exporters.benchmark.bench import ROUNDS
from exporters.benchmark.process import Worker, started
from exporters.benchmark.workload import Workload

THREADS = 2
SECONDS = 0.5
"""Minimum time per model and round, in seconds."""


@contextmanager
def running(
    models: Mapping[str, tuple[Sequence[str], Path]], provider: str = "cpu"
) -> Iterator[dict[str, Worker]]:
    """Start a worker for every command and the file or directory it loads on a provider; they end with the block."""
    with ExitStack() as ending:
        workers = {name: ending.enter_context(started(command)) for name, (command, _) in models.items()}
        for name, (_, path) in models.items():
            workers[name].ask(
                {"runtime": "onnxruntime", "path": str(path), "provider": provider, "threads": THREADS}
            )
        yield workers


def medians(workers: Mapping[str, Worker], work: Workload) -> dict[str, float]:
    """The time of a call in each worker, in seconds, after a warm-up; workers alternate."""
    for worker in workers.values():
        worker.ask({"prepare": asdict(work)})
    taken: dict[str, list[float]] = {name: [] for name in workers}
    for _ in range(ROUNDS):
        for name, worker in workers.items():
            taken[name] += worker.ask({"time": SECONDS})["seconds"]
    return {name: statistics.median(seconds) for name, seconds in taken.items()}
