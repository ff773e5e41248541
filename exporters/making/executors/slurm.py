"""Builds as jobs of a Slurm cluster, each with the resources for its model.

Every node needs zoo, and the zoo file's directory and the cache under the same paths, on storage that the nodes share.
"""

from __future__ import annotations

import shutil

from exporters.making.executors.processes import Processes
from exporters.making.job import Job
from specs.base.errors import UserError, option_name
from zoo.own_packages import command_of

MINUTES = 12 * 60
"""The time limit of a job."""

QUEUED = 100
"""The largest number of jobs that wait or run at once: each has a process of srun on this machine."""

MEGABYTE = 2**20


def slurm() -> Processes:
    """Return an executor on the cluster; in an allocation, its jobs are steps of that.

    Raises :class:`specs.base.errors.UserError` on a machine without Slurm.
    """
    if shutil.which("srun") is None:
        raise UserError(
            f"There is no Slurm here (no srun).\n  Run zoo make on a login node, or use {option_name('executor')} local."
        )
    return Processes(QUEUED, _command)


def _command(job: Job) -> list[str]:
    """Return the command that runs a worker as a job of the cluster: ``srun`` hands on its streams, signals and status."""
    reserved = [f"--mem={-(-job.memory // MEGABYTE)}M"] if job.memory else []
    reserved += [f"--gpus-per-node={job.gpus}"] if job.gpus else []
    named = [f"--job-name={job.name}", "--ntasks=1", f"--cpus-per-task={job.cpus}", f"--time={MINUTES}"]
    return ["srun", "--quiet", *named, *reserved, *command_of("exporters.making.worker")]
