"""Timing variants of models side by side.

Each variant lives in a process of its own, so that its memory is its own, and all are timed in turn, so that a machine
that drifts slows all alike.  What is timed is warm, and how fast the machine reads memory is measured in the same run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from exporters.benching.process import Worker, WorkerError, started
from exporters.benching.traffic import weights_read
from exporters.benching.variant import Variant
from exporters.benching.workload import Grid, Workload
from exporters.runtime.exported import open_export
from zoo.bandwidth import Bandwidth, measure_bandwidth
from zoo.manifest import read_record
from zoo.progress import Progress, Stage

ROUNDS = 5
"""How often the variants take turns."""


@dataclass(frozen=True)
class Loaded:
    """A variant that was loaded: its provider, seconds to load, bytes on disk or of weights, and peak memory in bytes.

    ``fault`` says why one could not be, or what ended it; ``quality`` are the figures that the export recorded of itself
    when it was verified, by name, where it did.
    """

    variant: Variant
    provider: str = ""
    load_seconds: float = 0.0
    size: int = 0
    peak: int = 0
    fault: str = ""
    quality: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        variant = self.variant
        return {
            "name": variant.label,
            "model": variant.spec.name,
            "runtime": variant.runtime,
            "target": variant.target or None,
            "precision": variant.precision,
            "provider": self.provider,
            "load_seconds": self.load_seconds,
            "bytes": self.size,
            "peak_bytes": self.peak,
            "fault": self.fault or None,
            "quality": dict(self.quality),
        }


@dataclass(frozen=True)
class Timing:
    """What the calls of one variant took, in seconds, and the bytes that each must read where memory bounds it."""

    variant: Variant
    workload: Workload
    seconds: tuple[float, ...]
    bytes_read: int | None = None

    def percentile(self, share: float) -> float:
        """The seconds within which such a percentage of calls was done."""
        return float(np.percentile(self.seconds, share))

    @property
    def median(self) -> float:
        """The seconds within which half of the calls were done."""
        return self.percentile(50)


@dataclass(frozen=True)
class Report:
    """All that was measured, of each workload its variants in order."""

    threads: int
    bandwidth: Bandwidth
    loaded: list[Loaded]
    timings: list[list[Timing]]

    def bound_share(self, timing: Timing) -> float | None:
        """How near a call is to the time that reading its bytes takes: 1 is as fast as memory allows."""
        if timing.bytes_read is None:
            return None
        return timing.bytes_read / self.bandwidth.read / timing.median

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "threads": self.threads,
            "bandwidth": asdict(self.bandwidth),
            "variants": [each.as_dict() for each in self.loaded],
            "timings": [self._timing(each, group[0]) for group in self.timings for each in group],
        }

    def _timing(self, timing: Timing, first: Timing) -> dict[str, Any]:
        work = timing.workload
        return {
            "name": timing.variant.label,
            "workload": work.label,
            **asdict(work),
            "calls": len(timing.seconds),
            "seconds": {f"p{share}": timing.percentile(share) for share in (50, 90, 99)},
            "sequences_per_second": work.batch / timing.median,
            "tokens_per_second": work.tokens / timing.median,
            "speed_against_first": first.median / timing.median,
            "bytes_read": timing.bytes_read,
            "share_of_bound": self.bound_share(timing),
        }


def bench(
    variants: Sequence[Variant], grid: Grid, threads: int, seconds: float, progress: Progress
) -> Report:
    """Load the variants, and time each workload on those that have it, about so many seconds each."""
    work = {variant: grid.workloads(variant.spec) for variant in variants}
    progress(Stage("measure the memory's bandwidth"))
    bandwidth = measure_bandwidth(threads)
    with ExitStack() as ending:
        running = _Running(progress)
        for variant in variants:
            progress(Stage(f"load {variant.label}"))
            running.load(variant, ending.enter_context(started()), threads)
        workloads = dict.fromkeys(each for found in work.values() for each in found)
        timings = [
            running.time(each, [variant for variant in variants if each in work[variant]], seconds)
            for each in workloads
        ]
    bandwidth = bandwidth.or_better(measure_bandwidth(threads))
    return Report(threads, bandwidth, list(running.loaded.values()), [group for group in timings if group])


class _Running:
    """The variants that run, each in its worker; one that fails is out, and the others go on."""

    def __init__(self, progress: Progress) -> None:
        self.loaded: dict[Variant, Loaded] = {}
        self._workers: dict[Variant, Worker] = {}
        self._progress = progress

    def load(self, variant: Variant, worker: Worker, threads: int) -> None:
        self.loaded[variant] = Loaded(variant)
        self._workers[variant] = worker
        request = {"runtime": variant.runtime, "path": str(variant.path), "threads": threads}
        if answer := self._ask(variant, request):
            self.loaded[variant] = Loaded(variant, **answer, quality=_recorded(variant))

    def time(self, workload: Workload, variants: Sequence[Variant], seconds: float) -> list[Timing]:
        """Warm up all variants, then time them in turn."""
        found: dict[Variant, list[float]] = {}
        read: dict[Variant, int | None] = {}
        for variant in variants:
            self._progress(Stage(f"{workload.label}: warm up {variant.label}"))
            if answer := self._ask(variant, {"prepare": asdict(workload)}):
                found[variant], read[variant] = [], _bytes_read(variant, answer["bytes_read"])
        for _ in range(ROUNDS):
            for variant in list(found):
                self._progress(Stage(f"{workload.label}: {variant.label}"))
                if answer := self._ask(variant, {"time": seconds / ROUNDS}):
                    found[variant] += answer["seconds"]
                    self.loaded[variant] = replace(self.loaded[variant], peak=answer["peak"])
                else:
                    del found[variant]
        return [Timing(variant, workload, tuple(taken), read[variant]) for variant, taken in found.items()]

    def _ask(self, variant: Variant, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer of a variant; None where it has failed, now or before."""
        if self.loaded[variant].fault:
            return None
        try:
            return self._workers[variant].ask(request)
        except WorkerError as error:
            self.loaded[variant] = replace(self.loaded[variant], fault=str(error))
            return None


def _recorded(variant: Variant) -> Mapping[str, float]:
    """How far an export is from the float model, as it recorded of itself."""
    build = read_record(variant.path).build if variant.runtime == "onnxruntime" else None
    return {} if build is None or build.quality is None else build.quality.figures


def _bytes_read(variant: Variant, told: int | None) -> int | None:
    """The bytes that a step reads: what its worker tells, and of an export the weights in its file."""
    if told is None or variant.runtime != "onnxruntime":
        return told
    return told + weights_read(open_export(variant.path).graphs[-1])
