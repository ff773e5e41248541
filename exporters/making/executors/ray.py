"""Builds as tasks of a Ray cluster, each with the resources for its model.

Every node needs zoo, and the zoo file's directory and the cache under the same paths, on storage that the nodes share.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from exporters.making.executors.executor import Tell
from exporters.making.job import Job, JobResult, outcome_of
from specs.base.errors import UserError
from zoo.core.progress import Stage

RETRIES = 3
"""The number of retries of a build whose worker or node dies."""


@dataclass(frozen=True)
class Ray:
    """An executor on the cluster at ``RAY_ADDRESS``, or the one that this process is part of; otherwise local."""

    def run(self, jobs: Sequence[Job], tell: Tell) -> Iterator[JobResult]:
        """See :meth:`exporters.making.executors.executor.Executor.run`."""
        try:
            import ray
        except ImportError:
            raise UserError("The executor ray needs a library.\n  pip install 'zoo[ray]'") from None
        started = not ray.is_initialized()
        if started:
            ray.init(address=os.environ.get("RAY_ADDRESS"), log_to_driver=False)
        pending: dict[Any, Job] = {}
        try:
            for job in jobs:
                pending[_submitted(ray, job)] = job
                tell(job.name, Stage("submitted"))
            while pending:
                ended, _ = ray.wait(list(pending), num_returns=1)
                for reference in ended:
                    yield _outcome(ray, reference, pending.pop(reference))
        finally:
            for reference in pending:
                ray.cancel(reference)
            if started:
                ray.shutdown()


def _submitted(ray: Any, job: Job) -> Any:
    reserved = {"memory": job.memory} if job.memory else {}
    task = ray.remote(outcome_of).options(
        name=job.name, num_cpus=job.cpus, num_gpus=job.gpus, max_retries=RETRIES, **reserved
    )
    return task.remote(job)


def _outcome(ray: Any, reference: Any, job: Job) -> JobResult:
    try:
        outcome: JobResult = ray.get(reference)
    except ray.exceptions.RayError as error:
        return JobResult(job.name, str(error))
    return outcome
