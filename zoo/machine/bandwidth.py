"""The speed at which this machine, or its GPU, reads and copies memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

SIZE = 512_000_000
"""Bytes of a pass, far more than any cache holds."""

CUDA_SIZE = 2 * SIZE
"""The same of a GPU, whose caches are larger."""

PASSES = 3


@dataclass(frozen=True)
class Bandwidth:
    """Bytes per second that several threads read, and that they read and write by copying."""

    read: float
    copy: float

    def or_better(self, other: Bandwidth) -> Bandwidth:
        """The better of two measurements: other load on the machine only slows them."""
        return replace(self, read=max(self.read, other.read), copy=max(self.copy, other.copy))


def measure_bandwidth(threads: int) -> Bandwidth:
    """The best of a few passes over half a gigabyte."""
    source, target = np.ones(SIZE // 4, np.float32), np.zeros(SIZE // 4, np.float32)
    parts = list(zip(np.array_split(source, threads), np.array_split(target, threads), strict=True))
    return Bandwidth(
        read=_rate(lambda part: np.dot(part[0], part[0]), parts, SIZE),
        copy=_rate(lambda part: np.copyto(part[1], part[0]), parts, 2 * SIZE),
    )


def measure_cuda_bandwidth() -> Bandwidth:
    """The best of a few passes over memory of the first CUDA device."""
    import torch

    source = torch.ones(CUDA_SIZE // 4, dtype=torch.float32, device="cuda")
    target = torch.empty_like(source)
    wait = torch.cuda.synchronize
    return Bandwidth(
        read=CUDA_SIZE / fastest(source.sum, wait),
        copy=2 * CUDA_SIZE / fastest(lambda: target.copy_(source), wait),
    )


def measure_reading(threads: int, size: int) -> float:
    """Bytes per second read: the best of a few passes over ``size`` bytes."""
    return _rate(
        lambda part: np.dot(part, part), np.array_split(np.ones(size // 4, np.float32), threads), size
    )


def fastest(work: Callable[[], object], wait: Callable[[], object]) -> float:
    """Seconds of the fastest of a few passes, after a warm-up."""
    times = []
    for _ in range(PASSES + 1):
        begun = time.perf_counter()
        work()
        wait()
        times.append(time.perf_counter() - begun)
    return min(times[1:])


def _rate(work: Callable[[Any], object], parts: Sequence[Any], moved: int) -> float:
    """The best rate of a few passes, with one thread per part."""
    times = []
    with ThreadPoolExecutor(len(parts)) as pool:
        for _ in range(PASSES):
            begun = time.perf_counter()
            list(pool.map(work, parts))
            times.append(time.perf_counter() - begun)
    return moved / min(times)
