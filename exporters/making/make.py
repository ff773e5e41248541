"""Bringing artefacts up to date."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from exporters.making.cache import Cache
from exporters.making.executors.executor import Executor, Tell
from exporters.making.job import Job, JobResult, job_of
from exporters.making.plan import MakePlan, MakeStep
from specs.base.errors import UserError


@dataclass(frozen=True)
class Made:
    """The result of one step: built, restored from the cache, or failed with an ``error``."""

    step: MakeStep
    state: Literal["built", "restored", "failed"]
    seconds: float = 0.0
    error: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "artefact": self.step.wanted.name,
            "directory": str(self.step.wanted.directory),
            "state": self.state,
            "why": self.step.why,
            "seconds": round(self.seconds, 3),
            "error": self.error,
        }


def make(plan: MakePlan, cache: Cache, executor: Executor, tell: Tell, limit: int) -> Iterator[Made]:
    """Carry out the steps of a plan, and update the lock file and the cache.

    Every artefact is in its directory as soon as it is built; a failed one does not stop the others. If the process is
    killed, finished artefacts are kept and the next call continues with the rest. ``limit`` is the size limit of the cache
    in bytes.
    """
    made: set[str] = set()
    try:
        with contextlib.closing(_made(plan, cache, executor, tell)) as steps:
            for each in steps:
                if each.state != "failed":
                    made.add(each.step.wanted.name)
                yield each
    finally:
        plan.locked(made).write(plan.zoo.lock)
    cache.prune(limit)


def _made(plan: MakePlan, cache: Cache, executor: Executor, tell: Tell) -> Generator[Made, None, None]:
    building: dict[str, list[MakeStep]] = {}
    jobs: list[Job] = []
    for step in plan.steps:
        if step.state == "failed":
            yield Made(step, "failed", error=step.why)
        elif step.state == "cached" and (made := _restored(step, cache, _locked(plan, step))) is not None:
            yield made
        elif step.state != "current":
            assert step.inputs is not None
            alike = building.setdefault(step.inputs.key, [])
            alike.append(step)
            if len(alike) == 1:
                jobs.append(job_of(step, cache, plan.zoo.root))
    keys = {job.name: job.key for job in jobs}
    if jobs:
        cache.check_writable()
    for outcome in executor.run(jobs, tell) if jobs else ():
        for step in building[keys[outcome.name]]:
            yield _placed(step, outcome, cache)


def _locked(plan: MakePlan, step: MakeStep) -> str | None:
    """Return the digest of the export that the lock file records for the inputs of a step; None where it has none."""
    assert step.inputs is not None
    entry = plan.lock.artefacts.get(step.wanted.name, {})
    return entry.get("export") if entry.get("key") == step.inputs.key else None


def _restored(step: MakeStep, cache: Cache, export: str | None = None) -> Made | None:
    """Return the result of a step whose artefact is in the cache; None where the cached artefact is damaged, or is not the
    ``export`` of that digest."""
    assert step.inputs is not None
    try:
        found = cache.place(step.inputs.key, step.wanted.directory, export)
    except UserError as error:
        return Made(step, "failed", error=str(error))
    return Made(step, "restored") if found else None


def _placed(step: MakeStep, outcome: JobResult, cache: Cache) -> Made:
    if not outcome.built:
        return Made(step, "failed", outcome.seconds, outcome.error)
    placed = _restored(step, cache)
    if placed is None:
        return Made(step, "failed", outcome.seconds, "The built files changed before they could be placed.")
    if placed.state == "failed":
        return placed
    return Made(step, "built", outcome.seconds)
