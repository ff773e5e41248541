"""Whole processes: their time and peak memory as the operating system accounts for them."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

PYTHON = sys.executable
ZOO = str(Path(sys.executable).parent / "zoo")


@dataclass(frozen=True)
class Usage:
    """Wall time and processor time in seconds, and peak resident memory in bytes."""

    seconds: float
    processor: float
    peak: int


LAUNCHER = """
import json, os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
output = process.stdout.read().decode()
_, status, usage = os.wait4(process.pid, 0)
seconds = time.perf_counter() - start
processor = usage.ru_utime + usage.ru_stime
print(json.dumps([os.waitstatus_to_exitcode(status), seconds, processor, usage.ru_maxrss, output]))
"""
"""Starts a command from a small process, because a child inherits the peak memory of its parent."""


def run(command: Sequence[str], accepted: Sequence[int] = (0,)) -> Usage:
    """Run a command once.  Raises RuntimeError with the output for an exit status that is not accepted.

    Python may write bytecode, so that later runs start from it, as an installed program does.
    """
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    launched = subprocess.run(
        [PYTHON, "-c", LAUNCHER, *command], capture_output=True, text=True, check=True, env=environment
    )
    status, seconds, processor, peak, output = json.loads(launched.stdout)
    if status not in accepted:
        raise RuntimeError(f"{' '.join(command)} exited with {status}:\n{output}")
    return Usage(seconds, processor, peak * (1 if sys.platform == "darwin" else 1024))


def export(model: str, target: str, directory: Path, *options: str) -> Path:
    """Export a model for a target without verification into a directory, and return that."""
    run([ZOO, "export", model, "--target", target, "--no-verify", *options, "-o", str(directory)])
    return directory


def median(usages: Sequence[Usage]) -> Usage:
    """The median of each figure."""
    return Usage(
        statistics.median(u.seconds for u in usages),
        statistics.median(u.processor for u in usages),
        int(statistics.median(u.peak for u in usages)),
    )


def least(usages: Sequence[Usage]) -> Usage:
    """The least of each figure, to which other work on the machine adds."""
    return Usage(
        min(u.seconds for u in usages), min(u.processor for u in usages), min(u.peak for u in usages)
    )


def in_turn(
    commands: Sequence[Sequence[str]],
    runs: int,
    accepted: Sequence[int] = (0,),
    *,
    summary: Callable[[Sequence[Usage]], Usage] = median,
) -> list[Usage]:
    """The usage of each command after one warm-up; commands alternate, so that drift affects all alike."""
    usages: list[list[Usage]] = [[] for _ in commands]
    for repeat in range(runs + 1):
        for command, measured in zip(commands, usages, strict=True):
            usage = run(command, accepted)
            if repeat:
                measured.append(usage)
    return [summary(measured) for measured in usages]
