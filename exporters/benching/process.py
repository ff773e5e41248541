"""A worker process, seen from the process that asks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


class WorkerError(Exception):
    """A worker that failed, or died."""


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
            pass  # what it said before it ended is there to be read
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
def started() -> Iterator[Worker]:
    """A worker that ends with the block, whatever it is doing."""
    # Torch's threads wait in the way that they do by default, not in the way that suits this program.
    kept = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    process = subprocess.Popen(
        [sys.executable, "-m", "exporters.benching.worker"],
        env={**kept, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield Worker(process)
    finally:
        process.kill()
        process.communicate()
