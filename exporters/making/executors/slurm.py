"""Builds as jobs of a Slurm cluster, submitted by submitit.

Every node needs zoo, and the zoo file's directory and the cache under the same paths, on storage that the nodes share.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exporters.making.executors.executor import OnStage
from exporters.making.job import Job, JobResult, outcome_of
from specs.base.errors import UserError
from zoo.core.progress import Stage

MINUTES = 12 * 60
"""The time limit of a job."""

GIGABYTE = 10**9


@dataclass(frozen=True)
class Slurm:
    """An executor on a cluster: ``slurm``, or ``local`` for processes that submitit starts on this machine."""

    cluster: str = "slurm"

    def run(self, jobs: Sequence[Job], on_stage: OnStage) -> Iterator[JobResult]:
        """See :meth:`exporters.making.executors.executor.Executor.run`."""
        try:
            import submitit
        except ImportError:
            raise UserError("The executor slurm needs a library.\n  pip install 'zoo[slurm]'") from None
        if self.cluster == "slurm" and shutil.which("sbatch") is None:
            raise UserError(
                "There is no Slurm here (no sbatch).\n  Run zoo make on a login node, or use --executor local."
            )
        submitted: dict[Any, Job] = {}
        try:
            for job in jobs:
                submitted[self._submitted(submitit, job)] = job
                on_stage(job.name, Stage("submitted"))
            for ended in submitit.helpers.as_completed(list(submitted)):
                yield _outcome(submitit, ended, submitted.pop(ended))
        finally:
            for left in submitted:
                left.cancel()

    def _submitted(self, submitit: Any, job: Job) -> Any:
        executor = submitit.AutoExecutor(folder=Path(job.cache) / "slurm", cluster=self.cluster)
        executor.update_parameters(
            name=job.name.replace("/", "-"),
            cpus_per_task=job.cpus,
            timeout_min=MINUTES,
            **({"mem_gb": -(-job.memory // GIGABYTE)} if job.memory else {}),
            **({"gpus_per_node": job.gpus} if job.gpus else {}),
        )
        return executor.submit(outcome_of, job)


def _outcome(submitit: Any, ended: Any, job: Job) -> JobResult:
    try:
        outcome: JobResult = ended.result()
    except (submitit.core.utils.UncompletedJobError, submitit.core.utils.FailedJobError) as error:
        return JobResult(job.name, str(error))
    return outcome
