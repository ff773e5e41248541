"""A worker process, from the parent's side."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from zoo.files.interrupts import uninterrupted
from zoo.own_packages import command_of

OURS = command_of("exporters.benchmark.worker")
"""The command of a worker that times a model of zoo's."""


class WorkerError(Exception):
    """A worker failed or died."""


class Worker:
    """A running worker."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a request.  Raises :class:`WorkerError`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # its last output can still be read
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            raise WorkerError(
                f"its process ended with status {status}" + " (out of memory?)" * (status == -9)
            )
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer


@contextmanager
def started(command: Sequence[str] = OURS) -> Iterator[Worker]:
    """Yield a worker that is ended with the block, even in the middle of a request."""
    # Torch's threads use their default wait policy, not this program's.
    kept = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    process: subprocess.Popen[str] | None = None
    try:
        with uninterrupted():  # otherwise a worker that has just started would be forgotten
            process = subprocess.Popen(
                command,
                env={**kept, "PYTHONPATH": os.pathsep.join(sys.path)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        yield Worker(process)
    finally:
        if process is not None:
            process.kill()
            process.communicate()
