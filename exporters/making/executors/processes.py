"""Builds in processes, which are local or are started on a cluster by a local command.

A process runs one job after another, so that libraries are loaded once, as long as the jobs ask for the same command. A
process that dies fails only its current job, and is replaced.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import IO, Any

from exporters.making.executors.executor import OnStage
from exporters.making.job import Job, JobResult
from zoo.core.progress import Stage
from zoo.own_packages import command_of

_GRACE = 10
"""Seconds that a stopped process has to clean up."""

_TOLD = 2_000
"""The largest number of characters reported of a dead process's last output."""


def _local(job: Job) -> list[str]:
    return command_of("exporters.making.worker")


@dataclass(frozen=True)
class Processes:
    """An executor with at most ``jobs`` processes at once; ``command`` starts the one for a job."""

    jobs: int
    command: Callable[[Job], list[str]] = _local

    def run(self, jobs: Sequence[Job], on_stage: OnStage) -> Iterator[JobResult]:
        """See :meth:`exporters.making.executors.executor.Executor.run`."""
        waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
        for job in jobs:
            waiting.put(job)
        events: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        workers = [_Worker(waiting, events, self.command) for _ in range(min(self.jobs, len(jobs)))]
        try:
            for worker in workers:
                worker.start()
            left = len(jobs)
            while left:
                name, event = events.get()
                if isinstance(event, JobResult):
                    left -= 1
                    yield event
                else:
                    on_stage(name, event)
        finally:
            for worker in workers:
                worker.stop()
            for worker in workers:
                worker.join()


class _Worker:
    """A process that receives jobs from a thread, which replaces it when it dies."""

    def __init__(
        self,
        waiting: queue.SimpleQueue[Job],
        events: queue.SimpleQueue[tuple[str, Any]],
        command: Callable[[Job], list[str]],
    ) -> None:
        self._waiting, self._events, self._command = waiting, events, command
        self._process: subprocess.Popen[str] | None = None
        self._lock, self._stopped = threading.Lock(), False
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Start with the first waiting job."""
        self._thread.start()

    def join(self) -> None:
        """Wait until the process has ended."""
        if self._thread.ident is not None:
            self._thread.join()

    def _work(self) -> None:
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as words:
            while (job := self._next()) is not None:
                try:
                    outcome = self._done(job, words)
                except Exception as error:  # otherwise the error would be lost
                    outcome = JobResult(job.name, f"The build process could not be started: {error}")
                if not self._stopped:
                    self._events.put((job.name, outcome))
            self._end()

    def _next(self) -> Job | None:
        try:
            return None if self._stopped else self._waiting.get_nowait()
        except queue.Empty:
            return None

    def _done(self, job: Job, words: IO[str]) -> JobResult:
        words.seek(0)
        words.truncate()
        process = self._running(self._command(job), words)
        if process is None:
            return JobResult(job.name, "stopped")
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(asdict(job)) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                event = json.loads(line)
                if "outcome" in event:
                    return JobResult(**event["outcome"])
                self._events.put((job.name, Stage(**event["stage"])))
        except (BrokenPipeError, ValueError):
            pass
        return JobResult(job.name, _last_words(process.wait(), words))

    def _running(self, command: list[str], words: IO[str]) -> subprocess.Popen[str] | None:
        if self._process is not None and self._process.args != command:
            self._end()
        with self._lock:
            if self._stopped:
                return None
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=words,
                    text=True,
                    encoding="utf-8",
                    start_new_session=True,  # Ctrl-C reaches only the parent, which stops its workers
                    env=os.environ | {"PYTHONUNBUFFERED": "1"},
                )
            return self._process

    def stop(self) -> None:
        """Ask the process to end; it removes its partial output."""
        with self._lock:
            self._stopped = True
            if self._process is not None and self._process.poll() is None:
                self._process.terminate()

    def _end(self) -> None:
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _last_words(status: int, words: IO[str]) -> str:
    """Return the end of a dead process: its signal or exit status, and the end of its output."""
    try:
        ended = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
    except ValueError:
        ended = f"with status {status}"
    killed = " (out of memory?)" if status == -signal.SIGKILL else ""
    words.seek(0)
    text = words.read()[-_TOLD:].strip()
    return f"The build process ended {ended}{killed}." + (f"\n{text}" if text else "")
