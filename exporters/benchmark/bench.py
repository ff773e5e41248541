"""Timing variants of models side by side.

Each variant runs in its own process, so that its memory is its own, and all take turns, so that a drifting machine
slows all of them alike. Calls are warm, and the machine's memory bandwidth is measured in the same run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from exporters.benchmark.process import Worker, WorkerError, started
from exporters.benchmark.traffic import weights_read
from exporters.benchmark.variant import Variant, usual_device
from exporters.benchmark.workload import Workload, WorkloadGrid
from exporters.runtime.exported import open_export
from exporters.target.providers import CPU, device_of, on_provider, provider_name
from zoo.core.progress import Progress, Stage
from zoo.machine.bandwidth import Bandwidth, measure_bandwidth, measure_cuda_bandwidth
from zoo.record.manifest import read_record

ROUNDS = 5
"""The number of turns that the variants take."""


@dataclass(frozen=True)
class LoadedVariant:
    """A loaded variant: its provider, seconds to load, bytes on disk or of weights, and peak memory in bytes.

    ``fault`` is the reason why a variant failed to load or ended; ``quality`` holds the figures that the export
    recorded when it was verified, by name.
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
    """The seconds of each call of one variant, the bytes that each call must read where memory bounds it, and the accepted share of
    a draft's tokens."""

    variant: Variant
    workload: Workload
    seconds: tuple[float, ...]
    bytes_read: int | None = None
    acceptance: float | None = None

    def percentile(self, share: float) -> float:
        """The seconds within which this percentage of calls finished."""
        return float(np.percentile(self.seconds, share))

    @property
    def median(self) -> float:
        """The median seconds of a call."""
        return self.percentile(50)


@dataclass(frozen=True)
class BenchmarkReport:
    """All measurements: for each workload its variants in order."""

    device: str
    threads: int
    bandwidth: Bandwidth
    loaded: list[LoadedVariant]
    timings: list[list[Timing]]

    def bound_share(self, timing: Timing) -> float | None:
        """The share of the memory-bandwidth bound: 1 is as fast as memory allows."""
        if timing.bytes_read is None:
            return None
        return timing.bytes_read / self.bandwidth.read / timing.median

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "device": self.device,
            "threads": self.threads,
            "bandwidth": asdict(self.bandwidth),
            "variants": [variant.as_dict() for variant in self.loaded],
            "timings": [self._timing(timing, group[0]) for group in self.timings for timing in group],
        }

    def _timing(self, timing: Timing, first: Timing) -> dict[str, Any]:
        work = timing.workload
        return {
            "name": timing.variant.label,
            "workload": work.label,
            **{name: value for name, value in asdict(work).items() if name != "rows"},
            "calls": len(timing.seconds),
            "seconds": {f"p{share}": timing.percentile(share) for share in (50, 90, 99)},
            "sequences_per_second": work.batch / timing.median,
            "tokens_per_second": work.tokens / timing.median,
            "speed_against_first": first.median / timing.median,
            "bytes_read": timing.bytes_read,
            "share_of_bound": self.bound_share(timing),
            "accepted_share": timing.acceptance,
        }


def bench(
    variants: Sequence[Variant],
    grid: WorkloadGrid,
    threads: int,
    seconds: float,
    provider: str | None,
    progress: Progress,
) -> BenchmarkReport:
    """Load the variants, and time each workload on those that support it, about ``seconds`` seconds each.

    Exports run on ``provider`` (default: their own, if all of them are for one device, or else the CPU's), and PyTorch on its
    device.
    """
    device = usual_device(variants) if provider is None else device_of(on_provider(provider)[0])
    if provider is None and device == device_of(CPU):
        provider = provider_name(CPU)
    work = {variant: variant.workloads(grid) for variant in variants}
    progress(Stage("measure the memory's bandwidth"))
    bandwidth = _bandwidth(device, threads)
    with ExitStack() as ending:
        running = _Running(provider, device, progress)
        for variant in variants:
            progress(Stage(f"load {variant.label}"))
            running.load(variant, ending.enter_context(started()), threads)
        workloads = dict.fromkeys(
            workload for workloads_of_one in work.values() for workload in workloads_of_one
        )
        timings = [
            running.time(workload, [variant for variant in variants if workload in work[variant]], seconds)
            for workload in workloads
        ]
    bandwidth = bandwidth.or_better(_bandwidth(device, threads))
    return BenchmarkReport(
        device, threads, bandwidth, list(running.loaded.values()), [group for group in timings if group]
    )


class _Running:
    """Yield the running variants, each in its worker; a variant that fails is dropped."""

    def __init__(self, provider: str | None, device: str, progress: Progress) -> None:
        self.loaded: dict[Variant, LoadedVariant] = {}
        self._workers: dict[Variant, Worker] = {}
        self._provider, self._device, self._progress = provider, device, progress

    def load(self, variant: Variant, worker: Worker, threads: int) -> None:
        self.loaded[variant] = LoadedVariant(variant)
        self._workers[variant] = worker
        request = {
            "runtime": variant.runtime,
            "path": str(variant.path),
            "precision": variant.precision,
            "provider": self._provider,
            "device": self._device,
            "threads": threads,
            "draft": variant.draft
            and {"path": str(variant.draft.exported.directory), "tokens": variant.draft.tokens},
        }
        if answer := self._ask(variant, request):
            facts = {name: answer[name] for name in ("provider", "load_seconds", "size")}
            self.loaded[variant] = LoadedVariant(variant, **facts, quality=_recorded(variant))

    def time(self, workload: Workload, variants: Sequence[Variant], seconds: float) -> list[Timing]:
        """Warm up all variants, then time them in turn."""
        times: dict[Variant, list[float]] = {}
        read: dict[Variant, int | None] = {}
        accepted: dict[Variant, float | None] = {}
        for variant in variants:
            self._progress(Stage(f"{workload.label}: warm up {variant.label}"))
            if answer := self._ask(variant, {"prepare": asdict(workload)}):
                times[variant], read[variant] = [], _bytes_read(variant, answer["bytes_read"])
                accepted[variant] = answer["acceptance"]
        for _ in range(ROUNDS):
            for variant in list(times):
                self._progress(Stage(f"{workload.label}: {variant.label}"))
                if answer := self._ask(variant, {"time": seconds / ROUNDS}):
                    times[variant] += answer["seconds"]
                    self.loaded[variant] = replace(self.loaded[variant], peak=answer["peak"])
                else:
                    del times[variant]
        return [
            Timing(variant, workload, tuple(taken), read[variant], accepted[variant])
            for variant, taken in times.items()
        ]

    def _ask(self, variant: Variant, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer of a variant; None where it has failed."""
        if self.loaded[variant].fault:
            return None
        try:
            return self._workers[variant].ask(request)
        except WorkerError as error:
            self.loaded[variant] = replace(self.loaded[variant], fault=str(error))
            return None


def _bandwidth(device: str, threads: int) -> Bandwidth:
    return measure_cuda_bandwidth() if device == "cuda" else measure_bandwidth(threads)


def _recorded(variant: Variant) -> Mapping[str, float]:
    """The distance of an export from the float model, as it recorded."""
    build = read_record(variant.path).build if variant.runtime == "onnxruntime" else None
    return {} if build is None or build.quality is None else build.quality.figures


def _bytes_read(variant: Variant, state_bytes: int | None) -> int | None:
    """The bytes that a step reads: as reported by its worker, plus the weights in the file of an export."""
    if state_bytes is None or variant.runtime != "onnxruntime":
        return state_bytes
    return state_bytes + weights_read(open_export(variant.path).graphs[-1])
