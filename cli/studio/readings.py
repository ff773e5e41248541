"""Readings that trace a model: costs, training and sizes of files, some in other processes while others are computed here."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, Literal

from cli.options.sizes import file_sizes
from specs.base.errors import UserError
from specs.model.model import Model
from zoo.reports.costs import costs
from zoo.reports.training import trainings

READINGS: dict[str, Callable[..., Any]] = {
    "costs": costs,
    "training": trainings,
    "sizes": lambda spec: file_sizes(spec, "portable"),
}
"""The readings by name, as the commands call them: functions of a spec, and of dtypes for training."""

Answer = tuple[Literal["result", "refused", "failed"], Any]
"""The answer of another process: a result, the text of a :class:`UserError`, or nothing after another error."""


class Reading:
    """The result of a reading, which another process may have begun."""

    def __init__(self, name: str, args: tuple[Any, ...], begun: Future[Answer] | None) -> None:
        self._name, self._args, self._begun = name, args, begun

    def result(self) -> Any:
        """The result, computed here unless another process has begun it.  Raises the errors of the reading."""
        if self._begun is not None and not self._begun.cancel():
            outcome, value = self._begun.result()
            if outcome == "refused":
                raise UserError(value)
            if outcome == "result":
                return value
        return READINGS[self._name](*self._args)

    def drop(self) -> None:
        """Leave it out, if no process has begun it."""
        if self._begun is not None:
            self._begun.cancel()


class Readings:
    """Begins readings in other processes; without one, all are computed where they are asked for."""

    def __init__(self) -> None:
        self._processes = list[subprocess.Popen[bytes]]()
        self._idle = SimpleQueue[subprocess.Popen[bytes]]()
        self._threads = ThreadPoolExecutor(1, "readings")

    def start(self, most: int = 2) -> Future[None]:
        """Start up to ``most`` processes, which take seconds to load torch; one processor is left to the first."""
        return self._threads.submit(self._start, min(most, (os.cpu_count() or 1) - 1))

    def begin(self, spec: Model, name: str, *args: Any) -> Reading:
        """Begin a reading of a spec."""
        begun = self._threads.submit(self._ask, name, spec, *args) if self._processes else None
        return Reading(name, (spec, *args), begun)

    def _start(self, count: int) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        started = [
            subprocess.Popen(
                [sys.executable, "-m", "cli.studio.reading_process"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
            )
            for _ in range(count)
        ]  # fmt: skip
        ready = [process for process in started if process.stdout and process.stdout.readline()]
        for process in ready:
            self._idle.put(process)
        if ready:
            self._threads, before = ThreadPoolExecutor(len(ready), "readings"), self._threads
            self._processes = ready
            before.shutdown(wait=False)

    def _ask(self, name: str, *args: Any) -> Answer:
        """A reading by the process that is idle; after one has ended, all are computed here."""
        try:
            asked = pickle.dumps((name, args))
        except Exception:  # such as a part whose class no other process can import
            return "failed", None
        process = self._idle.get()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            pickle.dump(asked, process.stdin)
            process.stdin.flush()
            answer: Answer = pickle.load(process.stdout)
        except (OSError, EOFError, pickle.PickleError):
            self._processes.clear()
            return "failed", None
        finally:
            self._idle.put(process)
        return answer
