"""Executors of builds: local processes, a Ray cluster, or Slurm."""

from __future__ import annotations

from exporters.making.executors.executor import Executor
from specs.base.errors import UserError
from specs.base.suggest import suggestion


def executor_of(name: str, jobs: int) -> Executor:
    """Return the executor ``local``, ``ray`` or ``slurm``. Raises :class:`specs.base.errors.UserError` for other names."""
    if name == "local":
        from exporters.making.executors.processes import Processes

        return Processes(jobs)
    if name == "ray":
        from exporters.making.executors.ray import Ray

        return Ray()
    if name == "slurm":
        from exporters.making.executors.slurm import slurm

        return slurm()
    raise UserError(f"Executor {name!r} is unknown.\n  {suggestion(name, ('local', 'ray', 'slurm'))}")
