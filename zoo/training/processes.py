"""Training runs in processes of their own, several at once."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from typing import Any, TypeAlias

import torch

from specs.base.errors import UserError, option_name
from zoo.own_packages import command_of
from zoo.training.run import Moment, OnMoment, Run
from zoo.training.settings import Settings
from zoo.training.task import TrainingTask

_GRACE = 10
"""Seconds that a stopped process has to clean up."""

_REPORTED = 2_000
"""The largest number of characters reported of a failed process's last output."""

Events: TypeAlias = "queue.SimpleQueue[tuple[TrainingProcess, dict[str, Any] | None]]"
"""The events of all processes: its progress or error, or None at its end."""


def train_in_processes(
    runs: Sequence[Run],
    task: TrainingTask,
    settings: Settings,
    device: torch.device,
    jobs: int,
    progress: OnMoment,
) -> None:
    """Train every run, ``jobs`` at once.  Processes share the cores, and take GPUs in turn.

    Raises :class:`UserError` if a process fails or is killed; the others are then stopped, and their states stay saved.
    """
    threads = max(1, torch.get_num_threads() // jobs)
    devices = (
        [device]
        if device.type == "cpu"
        else [torch.device("cuda", i) for i in range(torch.cuda.device_count())]
    )
    waiting, slots = list(runs), list(range(jobs))
    events: Events = queue.SimpleQueue()
    running: set[TrainingProcess] = set()
    try:
        while waiting or running:
            while waiting and slots:
                run, slot = waiting.pop(0), slots.pop(0)
                arguments = (run, task, settings, devices[slot % len(devices)], threads)
                running.add(TrainingProcess(run.label, slot, pickle.dumps(arguments), events))
            process, event = events.get()
            if event is None:
                process.check()
                running.remove(process)
                slots.append(process.slot)
            elif "error" in event:
                raise UserError(event["error"])
            else:
                progress(Moment(process.label, event["step"], settings.steps, event["loss"]))
    finally:
        for process in running:
            process.stop()
        for process in running:
            process.wait()


class TrainingProcess:
    """A process that trains one model; a thread reads its events.  ``slot``: its number among the processes that run at once."""

    def __init__(self, label: str, slot: int, arguments: bytes, events: Events) -> None:
        self.label, self.slot, self._events = label, slot, events
        self._words = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            command_of("zoo.training.worker"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            start_new_session=True,  # Ctrl-C reaches only the parent, which stops its processes
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
        )
        threading.Thread(target=self._read, args=(arguments,), daemon=True).start()

    def _read(self, arguments: bytes) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError), self._process.stdin as out:
            out.write(arguments)
        for line in self._process.stdout:
            with contextlib.suppress(ValueError):  # a killed process may leave half a line
                self._events.put((self, json.loads(line)))
        self._events.put((self, None))

    def check(self) -> None:
        """Raise a :class:`UserError` unless the process ended well."""
        status = self._process.wait()
        if status == 0:
            return
        self._words.seek(0)
        words = self._words.read()[-_REPORTED:].strip()
        raise UserError(
            f"The process that trained {self.label} {_ending(status)}\n"
            + (f"  last output: {words}\n" if words else "")
            + "  Run the command again to resume"
            + (f"; a smaller {option_name('jobs')} needs less memory." if status == -signal.SIGKILL else ".")
        )

    def stop(self) -> None:
        """Ask the process to end."""
        self._process.terminate()

    def wait(self) -> None:
        """Wait until the process has ended."""
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _ending(status: int) -> str:
    """How a process ended."""
    if -status not in set(signal.Signals):
        return f"ended with status {status}"
    return f"was ended by {signal.Signals(-status).name}" + (
        " (out of memory?)" if status == -signal.SIGKILL else ""
    )
