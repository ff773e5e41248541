"""Readings that trace a model: costs, training and sizes of files, some in a second process while others are computed here."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal

from cli.options.sizes import file_sizes
from specs.base.errors import UserError
from specs.model.model import Model
from zoo.reports.costs import costs
from zoo.reports.training import training

READINGS: dict[str, Callable[..., Any]] = {
    "costs": costs,
    "training": training,
    "sizes": lambda spec: file_sizes(spec, "portable"),
}
"""The readings by name, as the commands call them: functions of a spec, and of a dtype for training."""

Answer = tuple[Literal["result", "refused", "failed"], Any]
"""What the second process answers: a result, the text of a :class:`UserError`, or nothing after another error."""


class Reading:
    """The result of a reading, which the second process may have begun."""

    def __init__(self, name: str, args: tuple[Any, ...], begun: Future[Answer] | None) -> None:
        self._name, self._args, self._begun = name, args, begun

    def result(self) -> Any:
        """The result, computed here unless the second process has begun it.  Raises the errors of the reading."""
        if self._begun is not None and not self._begun.cancel():
            outcome, value = self._begun.result()
            if outcome == "refused":
                raise UserError(value)
            if outcome == "result":
                return value
        return READINGS[self._name](*self._args)

    def drop(self) -> None:
        """Have the second process leave it out, if it has not begun."""
        if self._begun is not None:
            self._begun.cancel()


class Readings:
    """Begins readings in a second process, one after the other; without one, all are computed where they are asked for."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "readings")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Future[None]:
        """Start the second process, which takes seconds to load torch; nothing on a machine with one processor."""
        return self._thread.submit(self._start)

    def begin(self, spec: Model, name: str, *args: Any) -> Reading:
        """Begin a reading of a spec."""
        begun = self._thread.submit(self._ask, name, spec, *args) if self._process is not None else None
        return Reading(name, (spec, *args), begun)

    def _start(self) -> None:
        if (os.cpu_count() or 1) < 2:
            return
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        process = subprocess.Popen(
            [sys.executable, "-m", "cli.studio.reading_process"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
        )  # fmt: skip
        assert process.stdout is not None
        if process.stdout.readline():  # it is ready
            self._process = process

    def _ask(self, name: str, *args: Any) -> Answer:
        """A reading by the second process; once that has ended, all are computed here."""
        process = self._process
        if process is None:
            return "failed", None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump((name, args), process.stdin)
            process.stdin.flush()
            answer: Answer = pickle.load(process.stdout)
        except (OSError, EOFError, pickle.PickleError):
            self._process = None
            return "failed", None
        return answer
