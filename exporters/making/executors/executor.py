"""The interface of executors: run jobs, and yield their outcomes as they end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from exporters.making.job import Job, JobResult
from zoo.core.progress import Stage

OnStage = Callable[[str, Stage], None]
"""Receives the name of a job and its current stage, where the executor knows it."""


class Executor(Protocol):
    """Runs jobs."""

    def run(self, jobs: Sequence[Job], on_stage: OnStage) -> Iterator[JobResult]:
        """Yield the outcome of every job, in the order in which they end.

        A job whose process dies yields an error. Closing the iterator stops running jobs.
        """
        ...
