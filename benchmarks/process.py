"""Whole processes: their time and peak memory as the operating system accounts for them."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PYTHON = sys.executable
ZOO = str(Path(sys.executable).parent / "zoo")


@dataclass(frozen=True)
class Usage:
    """Wall time in seconds and peak resident memory in bytes."""

    seconds: float
    peak: int


def run(command: Sequence[str], *, cwd: Path | None = None) -> Usage:
    """One run.  Raises RuntimeError with the output when it fails."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=cwd)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} exited with {process.returncode}:\n{output.decode()}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Usage(time.perf_counter() - start, usage.ru_maxrss * unit)


def median(usages: Sequence[Usage]) -> Usage:
    """The median of each figure."""
    return Usage(statistics.median(u.seconds for u in usages), int(statistics.median(u.peak for u in usages)))


def in_turn(commands: Sequence[Sequence[str]], runs: int, *, cwd: Path | None = None) -> list[Usage]:
    """The median usage of each command, run in turn so that a machine that drifts slows all alike; one warm-up."""
    usages: list[list[Usage]] = [[] for _ in commands]
    for repeat in range(runs + 1):
        for command, found in zip(commands, usages, strict=True):
            usage = run(command, cwd=cwd)
            if repeat:
                found.append(usage)
    return [median(found) for found in usages]
